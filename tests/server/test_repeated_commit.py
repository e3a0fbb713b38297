"""A connection that sends OffsetCommit requests like those before gets what new connections get for each."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.handlers import offset_commit
from kbroker.pending import Pending
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import OffsetFetchRequest
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.messages.sync_group import SyncGroupRequest
from kbroker.protocol.records import Record, build_batch
from kbroker.requests.context import Peer
from kbroker.requests.request import parse
from kbroker.requests.resources import Resources
from kbroker.requests.traffic import Traffic
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess, eventually

if TYPE_CHECKING:
    from kbroker.broker import Broker

PARTITIONS = 3
names = (f"name-{number:05}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path_factory.mktemp("data"))) as process:
        yield process


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[RawClient]:
    with server.client() as client:
        yield client


@pytest.fixture
def consumer(server: ServerProcess) -> Iterator[RawClient]:
    """A connection that has learned nothing yet."""
    with server.client() as client:
        yield client


def create(client: RawClient) -> tuple[str, bytes]:
    name = next(names)
    topics = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)]
    created = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert created.topics[0].error_code == ErrorCode.NONE
    return name, created.topics[0].topic_id


class Step(NamedTuple):
    version: int
    partitions: tuple[int, ...]
    offset: int
    leader_epoch: int
    metadata: str | None
    generation: int
    member_id: str
    retention_ms: int
    unknown_topic: bool
    behind: bytes  # bytes behind the request


steps = st.builds(
    Step,
    version=st.sampled_from((0, 2, 7, 8, 8, 8, 9, 10, 10)),
    partitions=st.sampled_from(
        ((0,), (0,), (0,), (0, 1), (0, PARTITIONS), (1, 0, 2), (), (PARTITIONS,), (0, 0))
    ),
    offset=st.integers(0, 2**62),
    leader_epoch=st.sampled_from((-1, -1, -1, 0, 7)),
    metadata=st.sampled_from(("", "", "", None, "text", "x" * 5000)),
    generation=st.sampled_from((-1,) * 6 + (3,)),
    member_id=st.sampled_from(("",) * 6 + ("member",)),
    retention_ms=st.sampled_from((-1, -1, -1, 10**9)),
    unknown_topic=st.sampled_from((False,) * 8 + (True,)),
    behind=st.sampled_from((b"",) * 8 + (b"\0", b"\1\2\3")),
)


def request(group: str, topic: tuple[str, bytes], step: Step) -> OffsetCommitRequest:
    name, topic_id = ("name-none-", b"unknown topic id") if step.unknown_topic else topic
    partitions = [
        OffsetCommitRequestPartition(
            partition, step.offset + number, step.leader_epoch if step.version >= 6 else -1, -1, step.metadata
        )
        for number, partition in enumerate(step.partitions)
    ]
    versioned: dict[str, Any] = {}
    if step.version >= 1:
        versioned = {"generation_id_or_member_epoch": step.generation, "member_id": step.member_id}
    if 2 <= step.version <= 4:
        versioned["retention_time_ms"] = step.retention_ms
    named = {"topic_id": topic_id} if step.version >= 10 else {"name": name}
    topics = [OffsetCommitRequestTopic(**named, partitions=partitions)]
    return OffsetCommitRequest(group_id=group, topics=topics, **versioned)


def answer(client: RawClient, group: str, topic: tuple[str, bytes], step: Step) -> Any:
    """What the partitions are told; None: the connection was closed."""
    frame = client.frame(request(group, topic, step), step.version) + step.behind
    client.socket.sendall(struct.pack(">i", len(frame) - 4) + frame[4:])
    try:
        (answered,) = client.receive().topics
    except Closed:
        return None
    if not step.unknown_topic:
        assert (answered.name, answered.topic_id) in ((topic[0], bytes(16)), ("", topic[1]))
    return answered.partitions


def offsets(client: RawClient, group: str) -> list[Any]:
    topics = client.ask(OffsetFetchRequest(group_id=group, topics=None), 7).topics
    return [topic.partitions for topic in topics]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.builds(lambda step, times: [step] * times, steps, st.integers(1, 4)), min_size=1, max_size=8)
)
def test_a_connection_is_answered_as_new_connections_are(
    server: ServerProcess, client: RawClient, runs: list[list[Step]]
) -> None:
    topic = create(client)
    one, other = next(names), next(names)
    lasting = server.client()
    try:
        for number, step in enumerate(itertools.chain(*runs)):
            step = step._replace(offset=step.offset + number)
            got = answer(lasting, one, topic, step)
            with server.client() as fresh:
                expected = answer(fresh, other, topic, step)
            assert got == expected
            assert offsets(client, one) == offsets(client, other)
            if got is None:
                lasting.close()
                lasting = server.client()
    finally:
        lasting.close()
    client.ask(DeleteTopicsRequest(topic_names=[topic[0]], timeout_ms=30_000), 5)


PLAIN = Step(8, (0, 1), 0, -1, "", -1, "", -1, False, b"")


def codes(partitions: Any) -> set[int]:
    return {partition.error_code for partition in partitions}


@pytest.mark.parametrize("version", [7, 8, 10])
def test_a_deleted_topic_is_gone_for_a_consumer_that_goes_on(
    client: RawClient, consumer: RawClient, version: int
) -> None:
    topic, group = create(client), next(names)
    step = PLAIN._replace(version=version)
    for offset in range(5):
        assert codes(answer(consumer, group, topic, step._replace(offset=offset))) == {ErrorCode.NONE}
    client.ask(DeleteTopicsRequest(topic_names=[topic[0]], timeout_ms=30_000), 5)
    gone = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer(consumer, group, topic, step)) == {gone}
    eventually(lambda: offsets(client, group) == [])


def join(client: RawClient, group: str, member_id: str = "") -> tuple[str, int]:
    asked = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"any")],
    )
    joined = client.ask(asked, 2)
    assert joined.error_code == ErrorCode.NONE
    client.ask(SyncGroupRequest(group, joined.generation_id, joined.member_id, assignments=[]), 0)
    return joined.member_id, joined.generation_id


def test_a_member_of_an_older_generation_is_told_so(client: RawClient, consumer: RawClient) -> None:
    topic, group = create(client), next(names)
    member_id, generation = join(client, group)
    step = PLAIN._replace(member_id=member_id, generation=generation)
    for offset in range(5):
        assert codes(answer(consumer, group, topic, step._replace(offset=offset))) == {ErrorCode.NONE}
    member_id, newer = join(client, group, member_id)
    assert newer > generation
    late = step._replace(offset=99)
    assert codes(answer(consumer, group, topic, late)) == {ErrorCode.ILLEGAL_GENERATION}
    assert {partition.committed_offset for partition in offsets(client, group)[0]} == {4, 5}
    current = step._replace(generation=newer)
    for offset in range(40):
        assert codes(answer(consumer, group, topic, current._replace(offset=offset))) == {ErrorCode.NONE}
    assert {partition.committed_offset for partition in offsets(client, group)[0]} == {39, 40}


def test_commits_of_many_connections_at_a_time_are_all_answered(
    server: ServerProcess, client: RawClient
) -> None:
    topic = create(client)
    consumers = {next(names): server.client() for _ in range(30)}
    try:
        for offset in range(10):
            for group, consumer in consumers.items():
                consumer.send(request(group, topic, PLAIN._replace(offset=offset)), PLAIN.version)
            for consumer in consumers.values():
                assert codes(consumer.receive().topics[0].partitions) == {ErrorCode.NONE}
        for group in consumers:
            assert [each.committed_offset for each in offsets(client, group)[0]] == [9, 10]
    finally:
        for consumer in consumers.values():
            consumer.close()


def test_requests_sent_without_waiting_are_answered_in_their_order(
    client: RawClient, consumer: RawClient
) -> None:
    topic, group = create(client), next(names)
    frames = [consumer.frame(request(group, topic, PLAIN._replace(offset=n)), 8) for n in range(100)]
    consumer.socket.sendall(b"".join(frames))
    for _ in frames:  # `receive` checks the correlation id
        assert codes(consumer.receive().topics[0].partitions) == {ErrorCode.NONE}
    assert [each.committed_offset for each in offsets(client, group)[0]] == [99, 100]


class Lanes:
    """What a connection remembers, in process, with a coordinator that the test plays."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.result: Pending[Any] = Pending.resolved({})
        groups = SimpleNamespace(offsets=SimpleNamespace(commit=self._commit))
        broker = cast(
            "Broker",
            SimpleNamespace(traffic=Traffic(-1), groups=groups, resources=lambda _: broker.own_resources),
        )
        broker.own_resources = Resources(broker, None, None)
        self.lanes = offset_commit.lanes(broker)
        self._correlation_id = 0
        self._peer = Peer("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 50000))

    def _commit(self, commit: Any, now_ms: int) -> Pending[Any]:
        self.asked += [new.offset for new in commit.offsets]
        return self.result

    def send(self, group: str, offset: int) -> Any:
        """What a lane makes of it; None: it is decoded."""
        asked = request(group, ("topic", bytes(16)), PLAIN._replace(offset=offset))
        self._correlation_id += 1
        header = RequestHeader(8, 8, self._correlation_id, "c")
        frame = memoryview(bytearray(encode_bytes(header, 2) + encode_bytes(asked, 8)))
        answer = self.lanes.take(frame, 0)
        if answer is None:
            self.lanes.learn(frame, parse(frame, self._peer, 0), None)
        return answer


def test_lanes_are_bounded_and_follow_what_is_sent() -> None:
    lanes = Lanes()
    assert [lanes.send("group", offset) is None for offset in range(4)] == [True, True, False, False]
    assert lanes.asked == [2, 3, 3, 4]
    for number in range(1, 200):
        for _ in range(40):
            lanes.send("g" * number, 0)
        assert lanes.send("g" * number, 0) is not None
        assert len(lanes.lanes._lanes) <= 4
    for _ in range(17):
        lanes.send("g" * 3000, 0)
    assert lanes.send("g" * 3000, 0) is None  # too long to be remembered


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("outcome", [{}, OSError("no room")], ids=["stored", "failed"])
def test_an_answer_is_framed_whenever_it_comes(later: bool, outcome: Any) -> None:
    lanes = Lanes()
    for offset in range(2):
        lanes.send("group", offset)
    lanes.result = Pending()

    def settle() -> None:
        if isinstance(outcome, Exception):
            lanes.result.fail(outcome)
        else:
            lanes.result.resolve(outcome)

    if not later:
        settle()
    answer = lanes.send("group", 7)
    if later:
        settle()
        assert answer.answer is lanes.result
        answer = answer.framed()
    answer = b"".join(answer)
    size, correlation_id = struct.unpack_from(">ii", answer)
    assert (size, correlation_id) == (len(answer) - 4, 3)
    code = ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(outcome, Exception) else ErrorCode.NONE
    assert answer.count(struct.pack(">ih", 1, code)) == 1  # of partition 1


def test_one_connection_may_commit_and_produce(client: RawClient, consumer: RawClient) -> None:
    topic, group = create(client), next(names)
    records = memoryview(build_batch([Record(1_700_000_000_000, None, b"value")]))
    data = [TopicProduceData(topic[0], partition_data=[PartitionProduceData(0, records)])]
    for number in range(40):
        assert codes(answer(consumer, group, topic, PLAIN._replace(offset=number))) == {ErrorCode.NONE}
        produced = consumer.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
        (result,) = produced.responses[0].partition_responses
        assert (result.error_code, result.base_offset) == (ErrorCode.NONE, number)
    assert [each.committed_offset for each in offsets(client, group)[0]] == [39, 40]


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\x08", b"\0\x08\0\x08"])
def test_a_frame_too_short_closes_a_connection_that_has_learned(
    server: ServerProcess, client: RawClient, consumer: RawClient, frame: bytes
) -> None:
    topic, group = create(client), next(names)
    for offset in range(4):
        answer(consumer, group, topic, PLAIN._replace(offset=offset))
    consumer.socket.sendall((struct.pack(">i", len(frame)) + frame) * 2)
    with pytest.raises(Closed):
        consumer.take(1)
    assert "Traceback" not in server.log()
