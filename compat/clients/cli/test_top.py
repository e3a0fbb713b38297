"""kbroker top on any Kafka: what its protocol tells."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat.clients.cli.conftest import Run
from compat.harness.brokers import Server
from compat.harness.waiting import eventually
from kbroker.cli import connection, top_kafka
from kbroker.cli.top_look import Look
from kbroker.cli.top_rates import measured


@contextmanager
def looking(server: Server) -> Iterator[tuple[Any, argparse.Namespace]]:
    parser = argparse.ArgumentParser()
    connection.add_connection_options(parser)
    arguments = parser.parse_args(["-b", server.bootstrap])
    with connection.admin(arguments) as client:
        yield client, arguments


def test_records_bytes_and_lag_are_told_by_the_protocol(kafka_server: Server, run: Run, topic: str) -> None:
    group = f"{topic}-group"
    run("topic", "create", topic, "-p", "2")
    run("produce", topic, "-p", "0", stdin=b"before\n")
    # The first of all groups waits for Kafka's coordinator to load.
    eventually(lambda: run("group", "reset", group, "--to-end", "-t", topic).exit_code == 0)
    with looking(kafka_server) as (client, arguments):
        before: Look = top_kafka.look(client, arguments)
        run("produce", topic, "-p", "1", stdin=b"1\n2\n3\n4\n")
        run("group", "reset", group, "--to-offset", "1", "-t", topic)
        after = top_kafka.look(client, arguments)
    before.at, after.at = 0, 2
    document = measured(before, after)
    assert document["cluster_id"]
    assert kafka_server.bootstrap in [f"{each['host']}:{each['port']}" for each in document["brokers"]]
    (row,) = [row for row in document["topics"] if row["topic"] == topic]
    assert (row["partitions"], row["records_per_second"]) == (2, 2.0)
    assert row["log_bytes"] > 0
    assert row["log_growth_per_second"] > 0
    assert not [row for row in document["topics"] if row["topic"].startswith("__")]
    (lagging,) = [row for row in document["groups"] if row["group"] == group]
    assert (lagging["type"], lagging["state"], lagging["members"]) == ("classic", "Empty", 0)
    assert (lagging["lag"], lagging["records_per_second"]) == (3, 0.5)
    assert 0 < document["disk"]["usable_bytes"] < document["disk"]["total_bytes"]
    assert document["answer_ms"] > 0
