"""kbroker group and lag on share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat.clients.cli.conftest import Run
from compat.clients.cli.resets import RESETS
from compat.harness.brokers import Server
from compat.harness.waiting import eventually


@pytest.fixture
def group(run: Run, topic: str, kafka_server: Server) -> str:
    """A share group that begins at the start of a topic with 5 records in the first of two partitions."""
    run("topic", "create", topic, "-p", "2")
    run("produce", topic, "-p", "0", stdin=b"0\n1\n2\n3\n4\n")
    name = f"{topic}-sharers"
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, name, incremental_configs=[entry])
    with AdminClient({"bootstrap.servers": kafka_server.bootstrap}) as admin:
        for altered in admin.incremental_alter_configs([resource]).values():
            altered.result(30)
    return name


@pytest.fixture
def member(kafka_server: Server, group: str, topic: str) -> Iterator[ShareConsumer]:
    """It has accepted the first 3 records, and released the others."""
    settings = {
        "bootstrap.servers": kafka_server.bootstrap,
        "group.id": group,
        "client.id": "a-sharer",
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    with closing(ShareConsumer(settings)) as consumer:
        consumer.subscribe([topic])
        accepted: set[int] = set()

        def accept() -> bool:
            for message in consumer.poll(0.2):
                done = message.offset() < 3
                consumer.acknowledge(message, AcknowledgeType.ACCEPT if done else AcknowledgeType.RELEASE)
                accepted.update([message.offset()] if done else [])
            consumer.commit_sync(10)
            return accepted == {0, 1, 2}

        eventually(accept)
        yield consumer


def of_first_partition(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["partition"] == 0)


def test_members_and_lag_are_shown_and_protect_their_group(
    run: Run, group: str, topic: str, member: ShareConsumer
) -> None:
    listed = run("group", "list", "--type", "share", "--json").json
    assert {"group": group, "state": "Stable", "type": "share", "protocol": "share"} in listed
    (described,) = run("group", "describe", group, "--json").json
    assert (described["type"], described["state"], described["assignor"]) == ("share", "Stable", "simple")
    assert [each["client_id"] for each in described["members"]] == ["a-sharer"]
    assert described["members"][0]["partitions"] == [f"{topic}-0", f"{topic}-1"]
    lag = of_first_partition(described["lag"])
    assert lag.pop("start_offset") in (0, 3)  # Kafka's is that before the last acknowledgement
    assert lag == {
        "group": group,
        "type": "share",
        "topic": topic,
        "partition": 0,
        "committed_offset": None,
        "log_end_offset": 5,
        "lag": 2,
    }
    assert "START" in run("group", "describe", group).stdout
    for command in (("lag", group), ("lag",), ("group", "lag")):
        rows = [row for row in run(*command, "--json").json if row["group"] == group]
        assert of_first_partition(rows)["lag"] == 2
    assert run("lag", group, "--max", "1").exit_code == 4
    (row,) = [
        row for row in run("top", "--json", "--interval", "100ms").json["groups"] if row["group"] == group
    ]
    assert (row["type"], row["state"], row["members"], row["lag"]) == ("share", "Stable", 1, 2)
    for refused in (run("group", "reset", group, "--to-end"), run("group", "delete", group)):
        assert refused.exit_code == 1
        assert "NON_EMPTY_GROUP" in refused.stderr


def test_a_share_group_is_reset_and_deleted(run: Run, group: str, member: ShareConsumer) -> None:
    member.close()

    def is_empty() -> bool:
        return bool(run("group", "describe", group, "--json").json[0]["state"] == "Empty")

    eventually(is_empty)
    for arguments, expected in RESETS:
        before = of_first_partition(run("group", "lag", group, "--json").json)
        dry = of_first_partition(run("group", "reset", group, *arguments, "--dry-run", "--json").json)
        assert (dry["from"], dry["to"]) == (before["start_offset"], expected), arguments
        assert of_first_partition(run("group", "lag", group, "--json").json) == before
        assert run("group", "reset", group, *arguments).exit_code == 0
        after = of_first_partition(run("group", "lag", group, "--json").json)
        assert (after["start_offset"], after["lag"]) == (expected, 5 - expected), arguments
    assert run("group", "delete", group).stdout == f"{group}: deleted\n"
    assert "GROUP_ID_NOT_FOUND" in run("group", "describe", group).stderr
