"""The request session of a connection: the gate decides about every request, also about those of lanes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from kbroker.control.faults import Faults
from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader
from kbroker.protocol.messages.fetch import FetchRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.requests.answers import Deferred
from kbroker.requests.lanes import NO_RUN
from kbroker.requests.session import Requests, Session
from tests.handlers.conftest import NOW_MS, Cluster

VERSION = 9
FLEXIBLE_HEADER = 2


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster({"node.id": "1"})
    cluster.create("t")
    yield cluster
    cluster.catalog.close()


@pytest.fixture
def faults(cluster: Cluster) -> Faults:
    return Faults(cluster.scheduler)


@pytest.fixture
def session(cluster: Cluster, faults: Faults) -> Session:
    requests = Requests(cluster.broker)
    requests.gate = faults
    return Session(requests, "PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 1))


def frame_of(request: object, api_key: int, version: int, header_version: int) -> memoryview:
    header = encode_bytes(RequestHeader(api_key, version, 7, "c"), header_version)
    return memoryview(bytearray(header + encode_bytes(request, version)))


def produce() -> memoryview:
    batch = memoryview(build_batch([Record(NOW_MS, None, b"value")]))
    data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data)
    return frame_of(request, 0, VERSION, FLEXIBLE_HEADER)


def code_of(answer: object) -> int:
    assert isinstance(answer, list)
    wire = memoryview(b"".join(bytes(part) for part in answer))
    response, _ = decode(ProduceResponse, VERSION, wire, 9)
    return response.responses[0].partition_responses[0].error_code


def sized(frame: memoryview) -> bytes:
    return struct.pack(">i", len(frame)) + bytes(frame)


def learn(session: Session) -> None:
    """The session's next Produce is not decoded."""
    assert code_of(session.execute(produce(), NOW_MS)) == ErrorCode.NONE
    together = session.execute_run(memoryview(bytearray(sized(produce()) * 2)), NOW_MS)
    assert together.requests == 2


def test_what_a_lane_would_take_is_refused_if_the_gate_says_so(session: Session, faults: Faults) -> None:
    learn(session)
    faults.fail("NOT_LEADER_OR_FOLLOWER", api="Produce")
    assert code_of(session.execute(produce(), NOW_MS)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(session.execute(produce(), NOW_MS)) == ErrorCode.NONE


def test_requests_that_come_together_are_taken_one_by_one_while_the_gate_may_refuse_one(
    session: Session, faults: Faults
) -> None:
    learn(session)
    faults.fail("NOT_LEADER_OR_FOLLOWER", api="Produce")
    assert session.execute_run(memoryview(bytearray(sized(produce()) * 2)), NOW_MS) is NO_RUN


def test_the_gate_sees_every_request_once(session: Session, faults: Faults) -> None:
    learn(session)  # one alone, two together
    session.execute(produce(), NOW_MS)
    assert [(seen.api, seen.version, seen.client_id) for seen in faults.requests] == [
        ("Produce", VERSION, "c")
    ] * 4


def test_a_request_that_is_delayed_is_executed_by_its_lane(
    session: Session, faults: Faults, cluster: Cluster
) -> None:
    learn(session)
    faults.delay(1000, api="Produce", times=1)
    waiting = session.execute(produce(), NOW_MS)
    assert isinstance(waiting, Deferred)
    assert cluster.end_offset("t") == 3
    faults.clear()
    assert code_of(waiting.framed()) == ErrorCode.NONE
    assert cluster.end_offset("t") == 4


def test_a_stop_waits_for_what_is_delayed_unless_it_is_a_long_poll(session: Session, faults: Faults) -> None:
    faults.delay(1000)
    for request, api_key, version, waits_for_others in (
        (FetchRequest(max_wait_ms=1000, min_bytes=1), 1, 12, True),
        (MetadataRequest(topics=[]), 3, 9, False),
    ):
        waiting = session.execute(frame_of(request, api_key, version, FLEXIBLE_HEADER), NOW_MS)
        assert isinstance(waiting, Deferred)
        assert waiting.waits_for_others is waits_for_others


@pytest.mark.parametrize("behind", [b"\0", b"\0\0"])
def test_an_empty_request_with_little_behind_it_is_no_run(session: Session, behind: bytes) -> None:
    learn(session)
    assert session.execute_run(memoryview(bytearray(struct.pack(">i", 0) + behind)), NOW_MS) is NO_RUN
