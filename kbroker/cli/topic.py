"""`kbroker topic`: make, look at, change and remove topics."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kbroker.cli import connection, times
from kbroker.cli.errors import refused
from kbroker.cli.output import add_output_options, note, plural, print_json, print_rows, print_table, say
from kbroker.exit_codes import FAILED, OK, CommandFailed

_TOPIC_ALREADY_EXISTS = 36
_UNKNOWN_TOPIC = 3
_INVALID_CONFIG = 40


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("topic", help="create, list, describe, alter, delete topics")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    create = _action(actions, "create", "make topics", _create)
    create.add_argument("topics", nargs="+", metavar="TOPIC")
    create.add_argument("-p", "--partitions", type=int, default=-1, help="how many (default: the broker's)")
    create.add_argument("-r", "--replicas", type=int, default=-1, help="how many (default: the broker's)")
    add_config_option(create)
    create.add_argument("--if-not-exists", action="store_true", help="topics that exist are left as they are")

    listing = _action(actions, "list", "the topics that there are", _list)
    listing.add_argument("--internal", action="store_true", help="also those that Kafka keeps for itself")

    describe = _action(actions, "describe", "partitions, offsets and configs of topics", _describe)
    describe.add_argument("topics", nargs="+", metavar="TOPIC")

    alter = _action(actions, "alter", "change configs of topics", _alter)
    alter.add_argument("topics", nargs="+", metavar="TOPIC")
    add_config_option(alter)
    alter.add_argument(
        "--unset",
        metavar="NAME",
        action="append",
        default=[],
        help="back to the default; any number of times",
    )

    delete = _action(actions, "delete", "delete topics and all their records", _delete)
    delete.add_argument("topics", nargs="+", metavar="TOPIC")
    delete.add_argument("--if-exists", action="store_true", help="topics that do not exist are no error")

    add = _action(actions, "add-partitions", "give topics more partitions", _add_partitions)
    add.add_argument("topics", nargs="+", metavar="TOPIC")
    number = add.add_mutually_exclusive_group(required=True)
    number.add_argument("-n", "--number", type=int, help="how many more")
    number.add_argument("--to", type=int, metavar="TOTAL", help="how many there are to be")

    trim = _action(actions, "trim", "delete the oldest records of a topic", _trim)
    trim.add_argument("topic", metavar="TOPIC")
    trim.add_argument(
        "-p", "--partition", type=int, action="append", help="only this one; any number of times"
    )
    where = trim.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--offset", type=int, help="delete what lies below this offset")
    where.add_argument(
        "--before", type=times.timestamp_ms, metavar="TIME", help=f"delete what is older: {times.HELP}"
    )
    where.add_argument("--all", action="store_true", help="delete every record that is there now")


def add_config_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c",
        "--config",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="such as retention.ms=3600000; any number of times",
    )


def parse_configs(entries: Sequence[str]) -> dict[str, str]:
    configs = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            raise CommandFailed(f"a config is given as NAME=VALUE, not {entry!r}")
        configs[name.strip()] = value.strip()
    return configs


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)
    return parser


def _create(arguments: argparse.Namespace) -> int:
    configs = parse_configs(arguments.config)
    asked = {
        name: {
            "num_partitions": arguments.partitions,
            "replication_factor": arguments.replicas,
            "configs": configs,
        }
        for name in arguments.topics
    }
    with connection.admin(arguments) as client:
        results = client.create_topics(asked, raise_errors=False)["topics"]
        made = [topic["name"] for topic in results if not topic["error_code"]]
        client.wait_for_topics(made, timeout_ms=arguments.timeout * 1000)
    accepted = (_TOPIC_ALREADY_EXISTS,) if arguments.if_not_exists else ()
    return _report(arguments, results, "created", "exists already", accepted, configs)


def refused_topic(name: str, code: int, message: str | None, configs: Iterable[str]) -> CommandFailed:
    """Why a topic with these configs was not made."""
    if code == _INVALID_CONFIG:
        from kbroker.cli.suggestions import of_configs

        message = (message or "a config is not valid").rstrip(". ") + of_configs("topic", configs)
    return refused(f"topic {name}", code, message)


def _report(
    arguments: argparse.Namespace,
    results: Sequence[dict[str, Any]],
    done: str,
    otherwise: str,
    accepted: Sequence[int] = (),
    configs: Iterable[str] = (),
) -> int:
    """Say what became of each topic, which was to have some configs; FAILED if one of them failed."""
    failures = {}
    outcomes: list[dict[str, Any]] = []
    for result in results:
        name, code = result["name"], result["error_code"]
        if code and code not in accepted:
            failures[name] = refused_topic(name, code, result.get("error_message"), configs)
            text = str(failures[name])
        else:
            text = otherwise if code else done
        outcomes.append({"topic": name, "ok": name not in failures, "result": text})
    if arguments.json:
        print_json(outcomes)
    for outcome in outcomes:
        if not outcome["ok"]:
            note(f"kbroker: {outcome['result']}")
        elif not arguments.json:
            say(f"{outcome['topic']}: {outcome['result']}")
    return FAILED if failures else OK


def _list(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        topics = connection.topic_metadata(client)
    rows = [
        {
            "name": topic["name"],
            "partitions": len(topic["partitions"]),
            "replicas": max((len(each["replica_nodes"]) for each in topic["partitions"]), default=0),
            "topic_id": str(topic.get("topic_id", "")),
            "internal": topic["is_internal"],
        }
        for topic in topics
        if arguments.internal or not topic["is_internal"]
    ]
    if not rows and not arguments.json:
        note("there are no topics: make one with 'kbroker topic create NAME'")
        return OK
    print_rows(arguments, rows, {"name": "TOPIC", "partitions": "PARTITIONS", "replicas": "REPLICAS"})
    return OK


def _describe(arguments: argparse.Namespace) -> int:
    kafka = connection.kafka()
    with connection.admin(arguments) as client:
        topics = connection.topic_metadata(client, arguments.topics)
        offsets = connection.partition_offsets(client, topics)
        resources = [kafka.admin.ConfigResource("TOPIC", topic["name"]) for topic in topics]
        configs = client.describe_configs(resources, config_filter="modified").get("topic", {})
    described = [
        {
            "name": topic["name"],
            "topic_id": str(topic.get("topic_id", "")),
            "internal": topic["is_internal"],
            "partitions": [_partition(topic["name"], each, offsets) for each in topic["partitions"]],
            "configs": {name: config["value"] for name, config in configs.get(topic["name"], {}).items()},
        }
        for topic in topics
    ]
    if arguments.json:
        print_json(described)
        return OK
    for number, topic in enumerate(described):
        if number:
            say()
        _print_topic(topic)
    return OK


def _partition(
    topic: str, metadata: dict[str, Any], offsets: dict[tuple[str, int], tuple[int, int]]
) -> dict[str, Any]:
    start, end = offsets[topic, metadata["partition_index"]]
    return {
        "partition": metadata["partition_index"],
        "leader": metadata["leader_id"],
        "leader_epoch": metadata.get("leader_epoch", -1),
        "replicas": metadata["replica_nodes"],
        "isr": metadata["isr_nodes"],
        "log_start_offset": start,
        "log_end_offset": end,
    }


def _print_topic(topic: dict[str, Any]) -> None:
    total = sum(each["log_end_offset"] - each["log_start_offset"] for each in topic["partitions"])
    say(f"{topic['name']}: {plural(len(topic['partitions']), 'partition')}, {plural(total, 'offset')}")
    for name, value in sorted(topic["configs"].items()):
        say(f"  {name} = {value}")
    print_table(
        ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END"),
        [list(row.values()) for row in topic["partitions"]],
    )


def _alter(arguments: argparse.Namespace) -> int:
    from kbroker.cli.config import alter

    if not arguments.config and not arguments.unset:
        raise CommandFailed("nothing to alter: give -c NAME=VALUE or --unset NAME")
    return alter(arguments, "topic", arguments.topics, parse_configs(arguments.config), arguments.unset)


def _delete(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        results = client.delete_topics(arguments.topics, raise_errors=False)["topics"]
        gone = {topic["name"] for topic in results if not topic["error_code"]}
        connection.until_visible(client, lambda client: not gone & set(client.list_topics()), arguments)
    accepted = (_UNKNOWN_TOPIC,) if arguments.if_exists else ()
    return _report(arguments, results, "deleted", "does not exist", accepted)


def _add_partitions(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        topics = connection.topic_metadata(client, arguments.topics)
        totals = {
            topic["name"]: arguments.to or len(topic["partitions"]) + arguments.number for topic in topics
        }
        results = client.create_partitions(totals, raise_errors=False).results
        done = {result.name for result in results if not result.error_code}
        connection.until_visible(
            client,
            lambda client: all(
                len(topic["partitions"]) >= totals[topic["name"]]
                for topic in client.describe_topics(list(done))
            ),
            arguments,
        )
    outcomes = [
        {"name": each.name, "error_code": each.error_code, "error_message": each.error_message}
        for each in results
    ]
    return _report(arguments, outcomes, "has more partitions now", "")


def _trim(arguments: argparse.Namespace) -> int:
    partition_type = connection.kafka().TopicPartition
    with connection.admin(arguments) as client:
        topic = trimmed_topic(client, arguments)
        targets = trim_targets(client, arguments, topic)
        done = client.delete_records({partition_type(*key): offset for key, offset in targets.items()})
    rows = [
        {"topic": each.topic, "partition": each.partition, "log_start_offset": done[each]["low_watermark"]}
        for each in sorted(done)
    ]
    print_rows(arguments, rows, {"topic": "TOPIC", "partition": "PARTITION", "log_start_offset": "START"})
    return OK


def trimmed_topic(client: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """The topic with those of its partitions that are meant."""
    topic: dict[str, Any]
    (topic,) = connection.topic_metadata(client, [arguments.topic])
    if arguments.partition:
        known = {each["partition_index"] for each in topic["partitions"]}
        if missing := set(arguments.partition) - known:
            raise CommandFailed(f"topic {arguments.topic} has no partition {min(missing)}")
        topic["partitions"] = [
            each for each in topic["partitions"] if each["partition_index"] in arguments.partition
        ]
    return topic


def trim_targets(
    client: Any, arguments: argparse.Namespace, topic: dict[str, Any]
) -> dict[tuple[str, int], int]:
    """The new log start offset of each partition."""
    partition_type = connection.kafka().TopicPartition
    offsets = connection.partition_offsets(client, [topic])
    if arguments.all:
        return {key: end for key, (_, end) in offsets.items()}
    if arguments.offset is not None:
        targets = {key: max(arguments.offset, start) for key, (start, _) in offsets.items()}
        for key, (_, end) in offsets.items():
            if targets[key] > end:
                raise CommandFailed(
                    f"partition {key[1]} of {key[0]} ends at offset {end}, before {arguments.offset}: "
                    "name a lower --offset, or --all"
                )
        return targets
    found = client.list_partition_offsets({partition_type(*key): arguments.before for key in offsets})
    return {
        key: found[partition_type(*key)].offset if found[partition_type(*key)].offset >= 0 else end
        for key, (_, end) in offsets.items()
    }
