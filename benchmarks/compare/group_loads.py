"""Loads on the group coordinator: members that settle, offset commits and heartbeats over raw sockets."""

from __future__ import annotations

import itertools
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer

from benchmarks.compare.brokers import Broker, Meter
from compat.harness.connection import Connection
from compat.harness.waiting import eventually
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.consumer_protocol import ConsumerProtocolSubscription, write
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kbroker.protocol.messages.heartbeat import HeartbeatRequest
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

_OFFSET_COMMIT, _HEARTBEAT, _CONSUMER_GROUP_HEARTBEAT = 8, 12, 68
_SETTLE_SECONDS = 120
_CALM_SECONDS = 1.5  # Apache Kafka computes an assignment at most once a second
PARTITIONS_EACH = 2
_LENGTH = struct.Struct(">i")
# Where the answers have their error code: after length, correlation id, tags and throttle time; at the end
# of the only partition.
HEARTBEAT_ERROR, COMMIT_ERROR = slice(13, 15), slice(-5, -3)
_names = itertools.count()


def settle(broker: Broker, topic: str, members: int, protocol: str) -> float:
    """Seconds from the start of the last member until each of them has its share of the partitions."""
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": f"settle-{next(_names)}",
        "group.protocol": protocol,
        "log_level": 0,
    }
    consumers = []
    try:
        for _ in range(members):
            consumers.append(Consumer(settings))
            consumers[-1].subscribe([topic])
        begin = time.perf_counter()
        while (settled := _polled(consumers)) < members:
            if time.perf_counter() - begin > _SETTLE_SECONDS:
                raise RuntimeError(f"{settled} of {members} members have their partitions")
            time.sleep(0.002)
        return time.perf_counter() - begin
    finally:
        for consumer in consumers:
            consumer.close()


def _polled(consumers: list[Consumer]) -> int:
    """Poll everyone; how many have PARTITIONS_EACH."""
    for consumer in consumers:
        consumer.poll(0)
    return sum(len(consumer.assignment()) == PARTITIONS_EACH for consumer in consumers)


def wait_for_coordinator(broker: Broker) -> None:
    """Apache Kafka makes the topic of its coordinator when it is first asked for it, and then loads it."""
    groups = [{"GroupId": f"any-{number}", "Topics": None} for number in range(500)]  # some on each partition

    def fetch_offsets() -> bool:
        with Connection(broker.bootstrap) as connection:
            connection.ask("FindCoordinator", 4, KeyType=0, CoordinatorKeys=["any"])
            fetched = connection.ask("OffsetFetch", 8, Groups=groups)
            return all(group["ErrorCode"] == 0 for group in fetched["Groups"])

    eventually(fetch_offsets, seconds=60)


class Pumped(NamedTuple):
    seconds: float
    cpu_seconds: float
    milliseconds: list[float]  # from request to answer, one each


def pump(
    broker: Broker, frames: Sequence[bytes], error_code: slice, count: int, per_second: float | None = None
) -> Pumped:
    """One connection per frame, on which it is sent again and again, each time the answer is there.

    With ``per_second`` the connections take turns at that rate. ``error_code`` is where an answer has it.
    """
    waiting = selectors.DefaultSelector()
    connections = [socket.create_connection((broker.host, broker.port), timeout=60) for _ in frames]
    sent_at: dict[socket.socket, float] = {}
    frame_of = dict(zip(connections, frames, strict=True))
    idle = list(reversed(connections))
    took: list[float] = []
    try:
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting.register(connection, selectors.EVENT_READ)
        meter = Meter(broker)
        begin = time.perf_counter()
        sent = 0
        while len(took) < count:
            pause = None
            while idle and sent < count:
                now = time.perf_counter()
                if per_second is not None and (pause := begin + sent / per_second - now) > 0:
                    break
                connection = idle.pop()
                sent_at[connection] = now
                connection.sendall(frame_of[connection])
                sent += 1
                pause = None
            for key, _ in waiting.select(pause):
                connection = key.fileobj  # type: ignore[assignment]
                if any(_take_answer(connection)[error_code]):
                    raise RuntimeError("the broker answered with an error")
                took.append((time.perf_counter() - sent_at.pop(connection)) * 1000)
                idle.insert(0, connection)
        return Pumped(time.perf_counter() - begin, meter.cpu_seconds, took)
    finally:
        waiting.close()
        for connection in connections:
            connection.close()


def commit_frames(topic: str, partitions: int, groups: int) -> list[bytes]:
    """An OffsetCommit of one partition for each group, as tools and consumers without members send it."""
    return [
        _frame(
            OffsetCommitRequest(
                group_id=f"commit-{next(_names)}",
                topics=[
                    OffsetCommitRequestTopic(
                        topic, partitions=[OffsetCommitRequestPartition(number % partitions, 1234)]
                    )
                ],
            ),
            _OFFSET_COMMIT,
            8,
        )
        for number in range(groups)
    ]


def classic_heartbeat_frame(broker: Broker, topic: str) -> bytes:
    """The heartbeat of a member that is alone in its group."""
    group = f"heartbeat-{next(_names)}"
    with Connection(broker.bootstrap) as connection:
        metadata = write(ConsumerProtocolSubscription(topics=[topic]), 1)
        join = {
            "GroupId": group,
            "SessionTimeoutMs": 60_000,
            "RebalanceTimeoutMs": 60_000,
            "MemberId": "",
            "ProtocolType": "consumer",
            "Protocols": [{"Name": "range", "Metadata": metadata}],
        }
        member_id = connection.ask("JoinGroup", 5, join)["MemberId"]
        joined = connection.ask("JoinGroup", 5, {**join, "MemberId": member_id})
        generation = joined["GenerationId"]
        assignments = [{"MemberId": member_id, "Assignment": b""}]
        connection.ask(
            "SyncGroup",
            3,
            GroupId=group,
            GenerationId=generation,
            MemberId=member_id,
            Assignments=assignments,
        )
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return _frame(request, _HEARTBEAT, 4)


def consumer_heartbeat_frame(broker: Broker, topic: str) -> bytes:
    """The same with the consumer protocol, once its epoch no longer changes."""
    group = f"heartbeat-{next(_names)}"
    joining = {
        "GroupId": group,
        "MemberId": "AAAAAAAAAAAAAAAAAAAAAA",
        "MemberEpoch": 0,
        "RebalanceTimeoutMs": 60_000,
        "SubscribedTopicNames": [topic],
        "TopicPartitions": [],
    }
    with Connection(broker.bootstrap) as connection:
        answer = connection.ask("ConsumerGroupHeartbeat", 1, joining)
        owned: list[dict[str, Any]] = []
        calm_since = time.perf_counter()
        while time.perf_counter() - calm_since < _CALM_SECONDS:
            epoch = answer["MemberEpoch"]
            if answer["Assignment"] is not None:
                owned = answer["Assignment"]["TopicPartitions"]
            heartbeat = {"GroupId": group, "MemberId": answer["MemberId"], "MemberEpoch": epoch}
            answer = connection.ask("ConsumerGroupHeartbeat", 1, {**heartbeat, "TopicPartitions": owned})
            if answer["MemberEpoch"] != epoch:
                calm_since = time.perf_counter()
            time.sleep(0.05)
    steady = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=answer["MemberId"], member_epoch=answer["MemberEpoch"]
    )
    return _frame(steady, _CONSUMER_GROUP_HEARTBEAT, 1)


def _frame(request: object, api_key: int, version: int) -> bytes:
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=1, client_id="bench"
    )
    body = encode_bytes(header, request_header_version(api_key, version)) + encode_bytes(request, version)
    return _LENGTH.pack(len(body)) + body


def _take_answer(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    while len(data) < 4 or len(data) < 4 + _LENGTH.unpack_from(data)[0]:
        part = connection.recv(65536)
        if not part:
            raise RuntimeError("the broker closed the connection")
        data += part
    return data
