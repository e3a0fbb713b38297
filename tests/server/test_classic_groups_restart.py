"""A kbroker that is killed, or stopped, and started again: its classic groups go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.differential.groups.transcript import Transcript
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import SETTINGS
from compat.harness.connection import Connection

UNKNOWN_MEMBER_ID = 25


@pytest.fixture
def server() -> Iterator[KBrokerProcess]:
    with KBrokerProcess(SETTINGS) as server, Connection(server.bootstrap) as admin:
        topic = {"Name": "group-topic", "NumPartitions": 3, "ReplicationFactor": 1}
        admin.ask("CreateTopics", 7, Topics=[topic], timeoutMs=30_000)
        yield server


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_members_and_offsets_survive(server: KBrokerProcess, how: str) -> None:
    before = Transcript(server.bootstrap, "group")
    member = before.settled_member("one")
    before.commit("one", offset=42, GenerationIdOrMemberEpoch=1, MemberId=member)
    before.commit("admin", offset=7, GroupId="group-simple")
    before.close()
    getattr(server, how)()
    server.start()
    after = Transcript(server.bootstrap, "group")
    assert after.heartbeat("one", member, 1)["ErrorCode"] == 0
    assert after.heartbeat("one", "nobody", 1)["ErrorCode"] == UNKNOWN_MEMBER_ID
    assert after.sync("one", member, 1)["Assignment"] == b"assignment"
    assert after.describe()["Groups"][0]["GroupState"] == "Stable"
    assert after.commit("one", offset=43, GenerationIdOrMemberEpoch=1, MemberId=member)
    for group, offset in (("group", 43), ("group-simple", 7)):
        partitions = after.fetch(GroupId=group)["Groups"][0]["Topics"][0]["Partitions"]
        assert [each["CommittedOffset"] for each in partitions] == [offset, -1]
    after.close()
