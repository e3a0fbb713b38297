"""A kbroker that is killed, or stopped, and started again: its share groups go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.differential.share_groups.transcript import ShareTranscript
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import SETTINGS
from compat.harness.connection import Connection

UNKNOWN_MEMBER_ID = 25


@pytest.fixture
def server() -> Iterator[KBrokerProcess]:
    with KBrokerProcess(SETTINGS) as server, Connection(server.bootstrap) as admin:
        topic = {"Name": "group-t", "NumPartitions": 3, "ReplicationFactor": 1}
        admin.ask("CreateTopics", 7, Topics=[topic], timeoutMs=30_000)
        yield server


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_members_their_epochs_and_their_partitions_survive(server: KBrokerProcess, how: str) -> None:
    before = ShareTranscript(server.bootstrap, "group")
    joined = before.join_share("m", "t", RackId="rack")
    assert [len(topic["Partitions"]) for topic in joined["Assignment"]["TopicPartitions"]] == [3]
    described = before.describe_share()
    before.close()
    getattr(server, how)()
    server.start()
    after = ShareTranscript(server.bootstrap, "group")
    again = after.beat("m", joined["MemberEpoch"])
    assert (again["ErrorCode"], again["MemberEpoch"]) == (0, joined["MemberEpoch"])
    assert after.beat("nobody", joined["MemberEpoch"])["ErrorCode"] == UNKNOWN_MEMBER_ID
    assert after.describe_share() == described
    assert after.join_share("m", "t")["Assignment"] == joined["Assignment"]
    after.close()


def test_a_deleted_group_stays_deleted(server: KBrokerProcess) -> None:
    before = ShareTranscript(server.bootstrap, "group")
    before.join_share("m", "t")
    before.beat("m", -1)
    (deleted,) = before.ask("admin", "DeleteGroups", 2, GroupsNames=["group"])["Results"]
    assert deleted["ErrorCode"] == 0
    before.close()
    server.kill()
    server.start()
    after = ShareTranscript(server.bootstrap, "group")
    assert after.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=[])["Groups"] == []
    after.close()
