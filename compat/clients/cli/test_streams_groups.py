"""kbroker group and lag on streams groups (KIP-1071), of a member that only joins and commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat.clients.cli.conftest import Run
from compat.harness.brokers import Server
from compat.harness.waiting import eventually
from kbroker.cli.wire_client import WireClient
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kbroker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


class Application:
    """A topic, the topic that the application itself writes, and its only member."""

    def __init__(self, wire: WireClient, source: str) -> None:
        self.group = f"{source}-app"
        self.source = source
        self.repartition = f"{self.group}-by-key-repartition"
        self.epoch = 0
        self._wire = wire

    def heartbeat(self, epoch: int | None = None, **fields: Any) -> Any:
        asked = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=MEMBER,
            member_epoch=self.epoch if epoch is None else epoch,
            **fields,
        )
        answer = self._wire.ask(asked, 0, StreamsGroupHeartbeatResponse)
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        return answer

    def join(self) -> None:
        """Until it has the tasks of both subtopologies."""
        first = Subtopology("0", [self.source], repartition_sink_topics=[self.repartition])
        second = Subtopology("1", [], repartition_source_topics=[TopicInfo(self.repartition, 1, 0, [])])
        joined = self.heartbeat(
            0,
            rebalance_timeout_ms=60_000,
            process_id="a-process",
            topology=Topology(0, [first, second]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        found: list[Any] = [joined.active_tasks]

        def assigned() -> bool:
            found.append(self.heartbeat().active_tasks)
            return any(tasks and len(tasks) == 2 for tasks in found)

        eventually(assigned)
        tasks = next(tasks for tasks in found if tasks and len(tasks) == 2)
        self.heartbeat(active_tasks=tasks, standby_tasks=[], warmup_tasks=[])

    def commit(self, topic: str, offset: int) -> None:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
        )
        asked = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=MEMBER,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        answer = self._wire.ask(asked, 9, OffsetCommitResponse)
        assert not answer.topics[0].partitions[0].error_code, answer


@pytest.fixture
def application(run: Run, kafka_server: Server, topic: str) -> Iterator[Application]:
    """It has read 1 of 3 records in the first of two partitions."""
    run("topic", "create", topic, "-p", "2")
    run("produce", topic, "-p", "0", stdin=b"0\n1\n2\n")
    host, _, port = kafka_server.bootstrap.rpartition(":")
    with WireClient((host, int(port)), 30) as wire:
        application = Application(wire, topic)
        application.join()
        application.commit(application.source, 1)
        application.commit(application.repartition, 0)
        yield application


def test_tasks_and_lag_are_shown_and_members_protect_their_group(run: Run, application: Application) -> None:
    group, source, repartition = application.group, application.source, application.repartition
    listed = run("group", "list", "--type", "streams", "--json").json
    assert {"group": group, "state": "Stable", "type": "streams", "protocol": "streams"} in listed
    (described,) = run("group", "describe", group, "--json").json
    assert (described["type"], described["state"]) == ("streams", "Stable")
    assert described["missing_source_topics"] == []
    assert [each["source_topics"] for each in described["subtopologies"]] == [[source], []]
    assert described["subtopologies"][1]["repartition_source_topics"] == [repartition]
    (member,) = described["members"]
    assert (member["member_id"], member["process_id"]) == (MEMBER, "a-process")
    assert member["active_tasks"] == ["0_0", "0_1", "1_0"]
    assert "0_0 0_1 1_0" in run("group", "describe", group).stdout
    for command in (("lag", group), ("lag",), ("group", "lag", group)):
        rows = [row for row in run(*command, "--json").json if row["group"] == group]
        assert [(row["topic"], row["partition"], row["committed_offset"], row["lag"]) for row in rows] == [
            (source, 0, 1, 2),
            (source, 1, None, 0),
            (repartition, 0, 0, 0),
        ]
    assert run("lag", group, "--max", "1").exit_code == 4
    assert run("group", "reset", group, "--to-end").exit_code == 1
    refused = run("group", "delete", group)
    assert refused.exit_code == 1
    assert "NON_EMPTY_GROUP" in refused.stderr


def test_a_streams_group_is_reset_where_it_reads_what_others_write(
    run: Run, application: Application
) -> None:
    group, source = application.group, application.source
    application.heartbeat(-1)
    for arguments, expected in ((("--to-end",), 3), (("--shift", "-1"), 2), (("--to-start",), 0)):
        assert run("group", "reset", group, *arguments).exit_code == 0
        rows = run("group", "lag", group, "--json").json
        committed = {row["topic"]: row["committed_offset"] for row in rows if row["partition"] == 0}
        assert committed == {source: expected, application.repartition: 0}
    reset = run("group", "reset", group, "--to-end", "--json").json
    assert [(row["topic"], row["partition"]) for row in reset] == [(source, 0)]
    assert run("group", "delete", group).stdout == f"{group}: deleted\n"


def test_a_group_that_misses_its_source_topics_says_which(run: Run, application: Application) -> None:
    run("topic", "delete", application.source)

    def is_told() -> bool:
        application.heartbeat()
        said = run("group", "describe", application.group).stdout
        return "NotReady" in said and f"its source topics {application.source} are not there" in said

    eventually(is_told)
    assert run("group", "list", "--state", "notready").stdout.count(application.group) == 1
