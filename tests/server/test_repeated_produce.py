"""A connection that sends Produce requests like those before gets what new connections get for each."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kbroker.protocol.records import Record, build_batch
from kbroker.requests import repeated_produce
from kbroker.requests.request import parse
from kbroker.storage.interface import Appended
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import Peer

PARTITIONS = 3
names = (f"topic-{number:05}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path_factory.mktemp("data"))) as process:
        yield process


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[RawClient]:
    with server.client() as client:
        yield client


@pytest.fixture
def producer(server: ServerProcess) -> Iterator[RawClient]:
    """A connection that has learned nothing yet."""
    with server.client() as client:
        yield client


def create(client: RawClient) -> str:
    name = next(names)
    topics = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)]
    created = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert created.topics[0].error_code == ErrorCode.NONE
    return name


def topic_id(client: RawClient, name: str) -> bytes:
    topics = [MetadataRequestTopic(topic_id=bytes(16), name=name)]
    found: bytes = client.ask(MetadataRequest(topics=topics), 12).topics[0].topic_id
    return found


def produce(
    name: str, of_id: bytes, version: int, partition: int, records: bytes, acks: int
) -> ProduceRequest:
    topic = TopicProduceData(
        name if version < 13 else "",
        of_id if version >= 13 else bytes(16),
        [PartitionProduceData(index=partition, records=memoryview(records))],
    )
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])


def everything(client: RawClient, name: str) -> list[bytes]:
    """All bytes of each partition's log."""
    asked = [
        FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=2**24) for p in range(PARTITIONS)
    ]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=2**25, topics=[FetchTopic(name, partitions=asked)]
    )
    partitions = client.ask(request, 12).responses[0].partitions
    assert {each.error_code for each in partitions} == {ErrorCode.NONE}
    return [bytes(each.records or b"") for each in partitions]


def _flip(position: int) -> Callable[[bytes], bytes]:
    return lambda batch: batch[:position] + bytes([batch[position] ^ 1]) + batch[position + 1 :]


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "intact": lambda batch: batch,
    "a wrong checksum": _flip(18),
    "another format": _flip(16),
    "a byte of a record": _flip(-1),
    "a base offset": _flip(7),
    "no batch": lambda _: b"",
    "half a batch": lambda batch: batch[: len(batch) // 2],
    "two batches": lambda batch: batch + batch,
    "bytes behind it": lambda batch: batch + bytes(9),
    "a length too short": lambda batch: batch[:8] + struct.pack(">i", 20) + batch[12:],
    "a length below zero": lambda batch: batch[:8] + struct.pack(">i", -1) + batch[12:],
}


class Step(NamedTuple):
    version: int
    partition: int
    records: int
    codec: int
    acks: int
    change: str
    attributes: str
    sequence: int | None
    behind: bytes  # bytes behind the request


steps = st.builds(
    Step,
    version=st.sampled_from((3, 7, 8, 9, 9, 9, 12, 13, 13, 13)),
    partition=st.sampled_from((0, 0, 0, 1, PARTITIONS)),
    records=st.sampled_from((1, 2, 30, 400)),
    codec=st.sampled_from((0, 0, 0, 1)),
    acks=st.sampled_from((-1, -1, 1, 5)),
    change=st.sampled_from(("intact",) * 12 + tuple(CHANGES)),
    attributes=st.sampled_from(("plain",) * 6 + ("transactional",)),
    sequence=st.sampled_from((None, None, 0, 1, 2, 3)),
    behind=st.sampled_from((b"",) * 8 + (b"\0", b"\1\2\3")),
)


def batch_of(step: Step) -> bytes:
    records = [Record(1_700_000_000_000 + n, None, b"value %d" % n) for n in range(step.records)]
    identity: dict[str, Any] = {}
    if step.sequence is not None:
        identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": step.sequence}
    transactional = step.attributes == "transactional"
    return CHANGES[step.change](
        build_batch(records, codec=step.codec, transactional=transactional, **identity)
    )


def framed(client: RawClient, name: str, of_id: bytes, step: Step) -> bytes:
    request = produce(name, of_id, step.version, step.partition, batch_of(step), step.acks)
    frame = client.frame(request, step.version) + step.behind
    return struct.pack(">i", len(frame) - 4) + frame[4:]


def answer(client: RawClient, name: str, of_id: bytes, step: Step) -> Any:
    """What the partition is told; None: the connection was closed."""
    client.socket.sendall(framed(client, name, of_id, step))
    return answered(client, name, of_id, step)


def answered(client: RawClient, name: str, of_id: bytes, step: Step) -> Any:
    try:
        response = client.receive()
    except Closed:
        return None
    assert response.responses[0].name == (name if step.version < 13 else "")
    assert response.responses[0].topic_id == (of_id if step.version >= 13 else bytes(16))
    return response.responses[0].partition_responses


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, min_size=2, max_size=25))
def test_a_connection_is_answered_as_new_connections_are(
    server: ServerProcess, client: RawClient, taken: list[Step]
) -> None:
    one, other = create(client), create(client)
    id_of_one, id_of_other = topic_id(client, one), topic_id(client, other)
    lasting = server.client()
    try:
        for step in taken:
            got = answer(lasting, one, id_of_one, step)
            with server.client() as fresh:
                expected = answer(fresh, other, id_of_other, step)
            assert got == expected
            if got is None:
                lasting.close()
                lasting = server.client()
    finally:
        lasting.close()
    assert everything(client, one) == everything(client, other)
    client.ask(DeleteTopicsRequest(topic_names=[one, other], timeout_ms=30_000), 5)


def repeated(step: Step, times: int) -> list[Step]:
    """A producer's next requests."""
    if step.sequence is None:
        return [step] * times
    return [step._replace(sequence=step.sequence + number * step.records) for number in range(times)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.builds(repeated, steps, st.integers(1, 6)), min_size=1, max_size=5))
def test_requests_that_come_together_are_answered_as_single_ones_are(
    server: ServerProcess, client: RawClient, runs: list[list[Step]]
) -> None:
    one, other = create(client), create(client)
    id_of_one, id_of_other = topic_id(client, one), topic_id(client, other)
    taken: list[Step] = []
    expected: list[Any] = []
    for step in itertools.chain(*runs):
        with server.client() as fresh:
            expected.append(answer(fresh, other, id_of_other, step))
        taken.append(step)
        if expected[-1] is None:
            break
    with server.client() as lasting:
        assert answer(lasting, one, id_of_one, taken[0]) == expected[0]
        lasting.socket.sendall(b"".join(framed(lasting, one, id_of_one, step) for step in taken[1:]))
        for step, known in zip(taken[1:], expected[1:], strict=True):
            assert answered(lasting, one, id_of_one, step) == known
    assert everything(client, one) == everything(client, other)
    client.ask(DeleteTopicsRequest(topic_names=[one, other], timeout_ms=30_000), 5)


def plain(records: int = 1) -> bytes:
    return build_batch([Record(1_700_000_000_000, None, b"x" * 100)] * records)


def codes(response: Any) -> tuple[int, int]:
    partition = response.responses[0].partition_responses[0]
    return partition.error_code, partition.base_offset


@pytest.mark.parametrize("version", [8, 9, 13])
def test_a_deleted_topic_is_gone_for_a_producer_that_goes_on(
    client: RawClient, producer: RawClient, version: int
) -> None:
    name = create(client)
    request = produce(name, topic_id(client, name), version, 0, plain(), 1)
    for offset in range(3):
        assert codes(producer.ask(request, version)) == (ErrorCode.NONE, offset)
    client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
    gone = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(producer.ask(request, version)) == (gone, -1)


def test_a_topic_made_anew_starts_at_its_beginning(client: RawClient, producer: RawClient) -> None:
    name = create(client)
    request = produce(name, bytes(16), 9, 0, plain(), 1)
    for offset in range(3):
        assert codes(producer.ask(request, 9)) == (ErrorCode.NONE, offset)
    client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
    client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert codes(producer.ask(request, 9)) == (ErrorCode.NONE, 0)


def set_config(client: RawClient, name: str, key: str, value: str) -> None:
    resource = AlterConfigsResource(2, name, [AlterableConfig(key, 0, value)])
    altered = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert altered.responses[0].error_code == ErrorCode.NONE


def test_configs_that_change_meanwhile_hold_at_once(client: RawClient, producer: RawClient) -> None:
    name = create(client)
    request = produce(name, bytes(16), 9, 0, plain(), 1)
    producer.ask(request, 9)
    assert producer.ask(request, 9).responses[0].partition_responses[0].log_append_time_ms == -1
    set_config(client, name, "message.timestamp.type", "LogAppendTime")
    assert producer.ask(request, 9).responses[0].partition_responses[0].log_append_time_ms > 0
    set_config(client, name, "max.message.bytes", "100")
    assert codes(producer.ask(request, 9)) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
    set_config(client, name, "max.message.bytes", "100000")
    set_config(client, name, "flush.messages", "1")
    assert codes(producer.ask(request, 9)) == (ErrorCode.NONE, 3)


def test_answers_keep_their_order_beside_one_that_waits_for_the_disk(
    client: RawClient, producer: RawClient
) -> None:
    slow, fast = create(client), create(client)
    set_config(client, slow, "flush.messages", "1")
    requests = [produce(name, bytes(16), 9, 0, plain(), 1) for name in (slow, fast)]
    for request in requests:
        producer.ask(request, 9)
    turns = [0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1]
    producer.socket.sendall(b"".join(producer.frame(requests[turn], 9) for turn in turns))
    written = [1, 1]
    for turn in turns:
        assert codes(producer.receive()) == (ErrorCode.NONE, written[turn])
        written[turn] += 1


def test_requests_of_several_partitions_come_together(client: RawClient, producer: RawClient) -> None:
    name = create(client)
    requests = [produce(name, bytes(16), 9, partition, plain(), 1) for partition in range(2)]
    for request in requests:
        producer.ask(request, 9)
    turns = [0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1]
    producer.socket.sendall(b"".join(producer.frame(requests[turn], 9) for turn in turns))
    written = [1, 1]
    for turn in turns:
        response = producer.receive()
        assert response.responses[0].partition_responses[0].index == turn
        assert codes(response) == (ErrorCode.NONE, written[turn])
        written[turn] += 1


def test_very_many_small_requests_come_together(client: RawClient, producer: RawClient) -> None:
    request = produce(create(client), bytes(16), 9, 0, build_batch([Record(1, None, b"x")]), 1)
    producer.ask(request, 9)
    producer.socket.sendall(b"".join(producer.frame(request, 9) for _ in range(2000)))
    assert [codes(producer.receive()) for _ in range(2000)] == [(ErrorCode.NONE, n + 1) for n in range(2000)]


def test_a_producer_of_many_partitions_and_topics_is_answered_for_each(
    client: RawClient, producer: RawClient
) -> None:
    topics = [create(client) for _ in range(3)]
    written = {(name, partition): 0 for name in topics for partition in range(PARTITIONS)}
    for turn in range(300):
        name, partition = topics[turn // 7 % 3], turn % PARTITIONS
        got = producer.ask(produce(name, bytes(16), 9, partition, plain(2), -1), 9)
        assert got.responses[0].name == name
        assert got.responses[0].partition_responses[0].index == partition
        assert codes(got) == (ErrorCode.NONE, written[name, partition])
        written[name, partition] += 2


@pytest.mark.parametrize("version", [3, 9])
def test_a_partition_without_a_batch_is_an_invalid_record(client: RawClient, version: int) -> None:
    request = produce(create(client), bytes(16), version, 0, b"", 1)
    (result,) = client.ask(request, version).responses[0].partition_responses
    assert result.error_code == ErrorCode.INVALID_RECORD


def test_a_length_that_is_no_number_closes_the_connection_with_a_line(
    server: ServerProcess, client: RawClient, producer: RawClient
) -> None:
    name = create(client)
    request = produce(name, bytes(16), 9, 0, plain(), 1)
    producer.ask(request, 9)
    frame = producer.frame(request, 9)
    start = frame.rindex(plain()) - 2  # where the length stands
    producer.socket.sendall(frame[:start] + b"\xff" * 6 + frame[start + 6 :])
    with pytest.raises(Closed):
        producer.receive()
    assert "Traceback" not in server.log()


def test_no_answer_is_given_where_none_is_asked_for(client: RawClient, producer: RawClient) -> None:
    name = create(client)
    for _ in range(3):
        producer.send_unanswered(produce(name, bytes(16), 9, 0, plain(), 0), 9)
    assert codes(producer.ask(produce(name, bytes(16), 9, 0, plain(), 1), 9)) == (ErrorCode.NONE, 3)


def test_lanes_are_bounded_and_old_ones_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """In process: what a connection remembers while a producer goes from topic to topic, and back."""
    monkeypatch.setattr(repeated_produce, "_MOST_LANES", 4)
    monkeypatch.setattr(repeated_produce, "_PATIENCE", 2)
    log = SimpleNamespace(append_as_leader=lambda batch, now_ms: Appended(5, 5, -1, 0, False, None))
    broker = SimpleNamespace(
        topics=SimpleNamespace(get=lambda name: SimpleNamespace(topic_id=name.encode())),
        open_logs={(f"t{number}".encode(), 0): log for number in range(10)},
    )
    lanes = repeated_produce.RepeatedProduces(cast("Broker", broker))

    def send(number: int) -> bool:
        """Whether it was taken without being decoded."""
        request = produce(f"t{number}", bytes(16), 9, 0, plain(), 1)
        header = RequestHeader(request_api_key=0, request_api_version=9, correlation_id=1, client_id="c")
        frame = memoryview(bytearray(encode_bytes(header, 2) + encode_bytes(request, 9)))
        if lanes.take(frame, 0) is not None:
            return True
        decoded = parse(frame, cast("Peer", None), 0)
        ok = PartitionProduceResponse(0, ErrorCode.NONE, 5)
        lanes.learn(frame, decoded, ProduceResponse([TopicProduceResponse(f"t{number}", bytes(16), [ok])]))
        assert len(lanes._lanes) <= 4
        return False

    assert [send(number) for number in (0, 0, 1, 1, 2, 3)] == [False, True, False, True, False, False]
    assert [send(0), send(9), send(9), send(0)] == [True, False, False, True]  # it has room for no more
    for _ in range(8):
        assert not send(8)
    assert send(8)  # those of before were not used for long
    assert not send(0)
