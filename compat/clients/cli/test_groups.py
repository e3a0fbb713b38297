"""kbroker group and lag."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import Consumer

from compat.clients.cli.conftest import Run
from compat.clients.cli.resets import RESETS
from compat.harness.brokers import Server
from compat.harness.waiting import eventually


@pytest.fixture
def group(run: Run, topic: str) -> str:
    """A group that has read 3 of the 5 records of a topic."""
    run("topic", "create", topic, "-p", "1")
    run("produce", topic, stdin=b"0\n1\n2\n3\n4\n")
    run("consume", topic, "-g", f"{topic}-group", "-n", "3")
    return f"{topic}-group"


def committed(run: Run, group: str) -> int:
    (row,) = run("group", "lag", group, "--json").json
    return int(row["committed_offset"])


def test_groups_are_listed_with_their_lag(run: Run, group: str, topic: str) -> None:
    (listed,) = [row for row in run("group", "list", "--json").json if row["group"] == group]
    assert listed["state"] == "Empty"
    assert listed["type"].lower() == "classic"
    (row,) = run("group", "lag", group, "--json").json
    assert row == {
        "group": group,
        "type": "classic",
        "topic": topic,
        "partition": 0,
        "committed_offset": 3,
        "start_offset": None,
        "log_end_offset": 5,
        "lag": 2,
    }
    assert group in run("group", "lag").stdout
    assert "0 members" in run("group", "describe", group).stdout


def test_a_group_is_reset(run: Run, group: str) -> None:
    before = 3
    for arguments, expected in RESETS:
        dry = run("group", "reset", group, *arguments, "--dry-run", "--json")
        assert [(row["from"], row["to"]) for row in dry.json] == [(before, expected)], arguments
        assert committed(run, group) == before
        assert run("group", "reset", group, *arguments).exit_code == 0
        assert committed(run, group) == expected
        before = expected


def test_a_group_that_read_nothing_needs_a_topic_to_be_reset(run: Run, group: str, topic: str) -> None:
    new = f"{group}-new"
    assert "-t TOPIC" in run("group", "reset", new, "--to-end").stderr
    assert run("group", "reset", new, "--to-end", "-t", topic).exit_code == 0
    assert committed(run, new) == 5


def test_a_group_is_deleted(run: Run, group: str) -> None:
    assert run("group", "delete", group).stdout == f"{group}: deleted\n"
    gone = run("group", "delete", group, "--json")
    assert gone.exit_code == 1
    assert "GROUP_ID_NOT_FOUND" in gone.json[0]["result"]
    assert "kbroker group list" in run("group", "describe", group).stderr


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_both_protocols_are_shown_and_protect_their_group(
    run: Run, topic: str, kafka_server: Server, protocol: str
) -> None:
    run("topic", "create", topic, "-p", "2")
    group = f"{topic}-{protocol}"
    settings = {
        "bootstrap.servers": kafka_server.bootstrap,
        "group.id": group,
        "client.id": "a-member",
        "group.protocol": protocol,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == 2

        eventually(assigned)
        (described,) = run("group", "describe", group, "--json").json
        assert described["type"] == protocol
        assert described["state"] == "Stable"
        (member,) = described["members"]
        assert member["client_id"] == "a-member"
        assert member["partitions"] == [f"{topic}-0", f"{topic}-1"]
        assert "a-member" in run("group", "describe", group).stdout
        assert run("group", "reset", group, "--to-end", "-t", topic).exit_code == 1
        refused = run("group", "delete", group)
        assert refused.exit_code == 1
        assert "NON_EMPTY_GROUP" in refused.stderr
