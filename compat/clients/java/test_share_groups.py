"""kafka-share-groups and kafka-groups: who is in share groups, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat.differential.groups.transcript import wait_for_coordinator
from compat.differential.share_groups.transcript import ShareTranscript
from compat.harness.brokers import Server

from .tables import rows

SHARE = "kafka-share-groups"


@pytest.fixture
def group(kafka_server: Server, unique: Callable[[str], str]) -> Iterator[ShareTranscript]:
    """A share group whose member m reads a topic of two partitions."""
    members = ShareTranscript(kafka_server.bootstrap, unique("share"))
    wait_for_coordinator(kafka_server.bootstrap, members.group)
    members.create_topic("t", 2)
    members.settle("m", "t")
    yield members
    members.close()


def of(group: ShareTranscript, output: str) -> list[dict[str, str]]:
    return [row for row in rows(output) if row["GROUP"] == group.group]


def test_share_groups_are_listed_by_their_state(run, group):
    assert group.group in run(SHARE, "--list").stdout.split()
    assert [row["STATE"] for row in of(group, run(SHARE, "--list", "--state").stdout)] == ["Stable"]
    assert [row["STATE"] for row in of(group, run(SHARE, "--list", "--state", "stable").stdout)] == ["Stable"]
    assert of(group, run(SHARE, "--list", "--state", "empty").stdout) == []
    group.beat("m", -1)
    assert [row["STATE"] for row in of(group, run(SHARE, "--list", "--state", "empty").stdout)] == ["Empty"]


def test_all_groups_are_listed_with_their_type(run, group):
    (listed,) = of(group, run("kafka-groups", "--list").stdout)
    assert (listed["TYPE"], listed["PROTOCOL"]) == ("Share", "share")
    assert of(group, run("kafka-groups", "--list", "--share").stdout) == [listed]
    assert of(group, run("kafka-groups", "--list", "--group-type", "classic").stdout) == []


def test_members_are_shown_with_their_partitions(run, group):
    (member,) = of(group, run(SHARE, "--describe", "--group", group.group, "--members").stdout)
    assert (member["CONSUMER-ID"], member["HOST"], member["CLIENT-ID"]) == ("m", "/127.0.0.1", "compat")
    assert (member["#PARTITIONS"], member["ASSIGNMENT"]) == ("2", f"{group.name_of('t')}:0,1")
    verbose = run(SHARE, "--describe", "--group", group.group, "--members", "--verbose").stdout
    assert [row["MEMBER-EPOCH"] for row in of(group, verbose)] == [str(group.epoch_of("m"))]


def test_the_state_is_shown(run, group):
    (state,) = of(group, run(SHARE, "--describe", "--group", group.group, "--state").stdout)
    assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
    group.beat("m", -1)
    (state,) = of(group, run(SHARE, "--describe", "--group", group.group, "--state", "--verbose").stdout)
    assert (state["STATE"], state["#MEMBERS"]) == ("Empty", "0")


def test_only_an_empty_group_is_deleted(run, group):
    delete = (SHARE, "--delete", "--group", group.group)
    assert "not EMPTY" in run(*delete).stdout
    group.beat("m", -1)
    assert "was successful" in run(*delete).stdout
    assert group.group not in run(SHARE, "--list").stdout.split()


def test_configs_of_a_share_group_are_set_and_shown(run, group):
    entity = ("--entity-type", "groups", "--entity-name", group.group)
    run("kafka-configs", "--alter", *entity, "--add-config", "share.auto.offset.reset=earliest")
    assert "share.auto.offset.reset=earliest" in run("kafka-configs", "--describe", *entity).stdout
    refused = run("kafka-configs", "--alter", *entity, "--add-config", "share.isolation.level=x", ok=False)
    assert "share.isolation.level" in refused.stdout + refused.stderr
