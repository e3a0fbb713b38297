"""`kbroker cluster`: who the brokers are."""

from __future__ import annotations

import argparse

from kbroker.cli import connection
from kbroker.cli.output import add_output_options, plural, print_json, print_table, say, size_text
from kbroker.exit_codes import OK


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("cluster", help="show the brokers")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    info = actions.add_parser(
        "info", help="cluster id, brokers, sizes", description="Cluster id, brokers, topics and sizes."
    )
    add_output_options(info)
    connection.add_connection_options(info)
    info.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        cluster = client.describe_cluster()
        topics = [topic for topic in connection.topic_metadata(client) if not topic["is_internal"]]
        directories = {each["broker"]: each["log_dirs"] for each in client.describe_log_dirs()}
    brokers = [
        {
            "id": broker["broker_id"],
            "host": broker["host"],
            "port": broker["port"],
            "rack": broker["rack"],
            "controller": broker["broker_id"] == cluster["controller_id"],
            "log_bytes": sum(
                partition["partition_size"]
                for directory in directories.get(broker["broker_id"], ())
                for topic in directory["topics"]
                for partition in topic["partitions"]
            ),
        }
        for broker in sorted(cluster["brokers"], key=lambda broker: int(broker["broker_id"]))
    ]
    found = {
        "cluster_id": cluster["cluster_id"],
        "controller": cluster["controller_id"],
        "topics": len(topics),
        "partitions": sum(len(topic["partitions"]) for topic in topics),
        "brokers": brokers,
    }
    if arguments.json:
        print_json(found)
        return OK
    counted = f"{plural(len(topics), 'topic')}, {plural(found['partitions'], 'partition')}"
    say(f"cluster {found['cluster_id']}: {counted}")
    rows = [
        (
            each["id"],
            f"{each['host']}:{each['port']}",
            each["rack"],
            size_text(each["log_bytes"]),
            "yes" if each["controller"] else "no",
        )
        for each in brokers
    ]
    print_table(("BROKER", "ADDRESS", "RACK", "LOGS", "CONTROLLER"), rows)
    return OK
