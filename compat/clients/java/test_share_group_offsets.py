"""kafka-share-groups on offsets: described, reset and deleted, and whole groups deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat.clients.java.conftest import PARTITIONS, RECORDS, Run
from compat.clients.java.tables import rows
from compat.harness.brokers import Server
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

TOOL = "kafka-share-groups"
EACH = RECORDS // PARTITIONS
Positions = dict[int, tuple[int, int]]


@pytest.fixture
def reset(run: Run, group: str, records: str) -> Callable[..., dict[int, int]]:
    """Reset the group's offsets of the topic; what the tool says that they are then."""

    def reset(*mode: str, topic: str = records, how: str = "--execute") -> dict[int, int]:
        result = run(TOOL, "--reset-offsets", "--group", group, "--topic", topic, *mode, how)
        return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in rows(result.stdout)}

    return reset


@pytest.fixture
def member(kafka_server: Server, group: str, records: str) -> Iterator[None]:
    """A member of the group."""
    asked = {"GroupId": group, "MemberId": "the-member"}
    with Connection(kafka_server.bootstrap) as connection:
        eventually(
            lambda: connection.ask(
                "ShareGroupHeartbeat", 1, **asked, MemberEpoch=0, SubscribedTopicNames=[records]
            ),
            lambda joined: joined["ErrorCode"] == 0,
        )
        yield
        connection.ask("ShareGroupHeartbeat", 1, **asked, MemberEpoch=-1, SubscribedTopicNames=None)


def positions(run: Run, group: str) -> Positions:
    """Start offset and lag, by partition of the one topic."""
    described = rows(run(TOOL, "--describe", "--group", group, "--offsets").stdout)
    return {int(row["PARTITION"]): (int(row["START-OFFSET"]), int(row["LAG"])) for row in described}


def test_a_group_is_made_by_resetting_its_offsets(run, reset, group, records):
    assert reset("--to-earliest") == {0: 0, 1: 0}
    assert positions(run, group) == {0: (0, EACH), 1: (0, EACH)}
    listed = {row["GROUP"]: row for row in rows(run(TOOL, "--list", "--state").stdout)}
    assert listed[group]["STATE"] == "Empty"
    assert group in run(TOOL, "--list").stdout.split()
    described = rows(run(TOOL, "--describe", "--group", group, "--offsets", "--verbose").stdout)
    assert {(row["TOPIC"], row["LEADER-EPOCH"]) for row in described} == {(records, "0")}
    state = rows(run(TOOL, "--describe", "--group", group, "--state").stdout)
    assert (state[0]["STATE"], state[0]["#MEMBERS"]) == ("Empty", "0")


def test_offsets_are_reset(run, reset, group, records):
    reset("--to-earliest")
    assert reset("--to-latest", topic=f"{records}:1") == {1: EACH}
    assert positions(run, group) == {0: (0, EACH), 1: (EACH, 0)}
    assert reset("--to-datetime", "2000-01-01T00:00:00.000") == {0: 0, 1: 0}
    assert positions(run, group) == {0: (0, EACH), 1: (0, EACH)}
    run(TOOL, "--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute")
    assert positions(run, group) == {0: (EACH, 0), 1: (EACH, 0)}


def test_a_dry_run_changes_nothing(run, reset, group):
    assert reset("--to-latest", how="--dry-run") == {0: EACH, 1: EACH}
    assert group not in run(TOOL, "--list").stdout.split()
    reset("--to-earliest")
    reset("--to-latest", how="--dry-run")
    assert positions(run, group) == {0: (0, EACH), 1: (0, EACH)}


def test_the_lag_grows_with_the_topic(run, reset, group, records, kafka_server):
    reset("--to-latest")
    run("kafka-console-producer", "--topic", records, stdin="more\n")
    assert sum(lag for _, lag in positions(run, group).values()) == 1


def test_offsets_are_deleted_by_topic(run, reset, group, records):
    reset("--to-earliest")
    delete = (TOOL, "--delete-offsets", "--group", group, "--topic")
    assert "Successful" in run(*delete, records).stdout
    assert (
        f"Share group '{group}' has no offset information."
        in run(TOOL, "--describe", "--group", group, "--offsets").output
    )
    assert "There is no offset information to delete." in run(*delete, records).output
    assert "Error" in run(*delete, "missing").output
    assert group in run(TOOL, "--list").stdout.split()


def test_a_group_with_a_member_keeps_its_offsets(run, group, records, member):
    reset = (TOOL, "--reset-offsets", "--group", group, "--topic", records, "--to-earliest", "--execute")
    assert f"Share group '{group}' is not empty." in run(*reset, ok=False).output
    result = run(TOOL, "--delete-offsets", "--group", group, "--topic", records)
    assert "The group is not empty." in result.output
    assert f"Share group '{group}' is not EMPTY." in run(TOOL, "--delete", "--group", group).output


def test_an_empty_group_is_deleted_with_its_offsets(run, reset, group):
    reset("--to-latest")
    deleted = run(TOOL, "--delete", "--group", group)
    assert f"Deletion of requested share groups ('{group}') was successful." in deleted.stdout
    assert group not in run(TOOL, "--list").stdout.split()
    assert f"Group {group} not found." in run(TOOL, "--describe", "--group", group, "--offsets").output
    reset("--to-earliest")
    assert positions(run, group) == {0: (0, EACH), 1: (0, EACH)}


def test_all_groups_are_described(run, reset, group):
    reset("--to-earliest")
    described = rows(run(TOOL, "--describe", "--all-groups", "--offsets").stdout)
    assert {int(row["PARTITION"]) for row in described if row["GROUP"] == group} == {0, 1}
