"""kbroker lag and group lag: what an alarm is built on."""

from __future__ import annotations

from contextlib import closing

import confluent_kafka
import pytest

from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run
from tests.support.server_process import eventually


def test_a_group_that_is_not_there_is_an_error(run: Run) -> None:
    for command in (("lag", "--max", "5", "nobody"), ("lag", "nobody"), ("group", "lag", "nobody")):
        result = run(*command)
        assert result.exit_code == 1
        assert "GROUP_ID_NOT_FOUND" in result.stderr
        assert "kbroker group list" in result.stderr


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_assigned_partitions_without_a_commit_count_all_their_records(
    run: Run, broker: KafkaBroker, protocol: str
) -> None:
    run("topic", "create", "orders", "-p", "2")
    run("produce", "orders", "-p", "0", stdin=b"1\n2\n3\n")
    run("topic", "trim", "orders", "-p", "0", "-o", "1")
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "billing",
        "group.protocol": protocol,
        "enable.auto.commit": False,
    }
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.subscribe(["orders"])

        def assigned() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == 2

        eventually(assigned)
        rows = run("lag", "billing", "--json").json
        assert [(row["partition"], row["committed_offset"], row["lag"]) for row in rows] == [
            (0, None, 2),
            (1, None, 0),
        ]
        assert run("lag", "--max", "1").exit_code == 4
        assert run("lag", "--max", "2", "billing").exit_code == 0
        assert [row["lag"] for row in run("group", "lag", "billing", "--json").json] == [2, 0]
        assert [row["lag"] for row in run("group", "describe", "billing", "--json").json[0]["lag"]] == [2, 0]
        consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 3)], asynchronous=False)
        assert run("lag", "--max", "0").exit_code == 0
