"""The same as in test_fairness.py, of groups: while a member says very much, others are answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from kbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kbroker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.server.test_fairness import others_get_on
from tests.support.server_process import ServerProcess

PARTITIONS = 10_000  # as many as a share session may list


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory") as server:
        yield server


@pytest.fixture(scope="module")
def topic_id(server: ServerProcess) -> bytes:
    with server.client() as client:
        topics = [CreatableTopic("t", PARTITIONS, 1)]
        (created,) = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics
        return bytes(created.topic_id)


def test_owning_one_topic_a_hundred_thousand_times(server: ServerProcess, topic_id: bytes) -> None:
    def beat(epoch: int, owned: list[TopicPartitions]) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id="consumers",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=owned,
        )

    with server.client(120) as client:
        assert client.ask(beat(0, []), 1).error_code == ErrorCode.NONE
        owned = [TopicPartitions(topic_id, [number]) for number in range(100_000)]
        with others_get_on(server, client, beat(1, owned), 1) as size:
            assert size < 1_000  # an error


def test_a_topology_of_very_many_topics_each_of_which_waits_for_the_next(
    server: ServerProcess, topic_id: bytes
) -> None:
    length = 5_000
    chain = [
        Subtopology(
            f"{number:05}",
            repartition_source_topics=[TopicInfo(f"r{number}", 0, 1)],
            repartition_sink_topics=[f"r{number - 1}"] if number else [],
        )
        for number in range(length)
    ]
    last = Subtopology("last", source_topics=["t"], repartition_sink_topics=[f"r{length - 1}"])
    topology = Topology(0, [*chain, last])
    join = StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id="m",
        rebalance_timeout_ms=60_000,
        topology=topology,
        process_id="p",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    with server.client(120) as client, others_get_on(server, client, join, 0) as size:
        assert size < 10_000


def test_the_first_share_fetch_of_as_many_partitions_as_a_session_may_have(
    server: ServerProcess, topic_id: bytes
) -> None:
    join = ShareGroupHeartbeatRequest(group_id="shares", member_id="m", subscribed_topic_names=["t"])
    fetch = ShareFetchRequest(
        group_id="shares",
        member_id="m",
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=500,
        batch_size=500,
        topics=[FetchTopic(topic_id, [FetchPartition(number) for number in range(PARTITIONS)])],
    )
    with server.client(120) as client:
        assert client.ask(join, 1).error_code == ErrorCode.NONE
        with others_get_on(server, client, fetch, 2) as size:
            assert size > PARTITIONS * 20
