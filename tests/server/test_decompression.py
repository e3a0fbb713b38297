"""Batches that hide much, for topics whose rules look into them: looked into in turns, within the budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch, compression, iter_records
from kbroker.protocol.records.batch import iter_batches
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess

MIB = 2**20
BUDGET = 64 * MIB
TOPICS = {
    "compacted": {"cleanup.policy": "compact"},
    "recompressed": {"compression.type": "lz4"},
    "bounded": {"message.timestamp.before.max.ms": "1000000000000000"},
    "plain": {},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--set", f"queued.max.request.bytes={BUDGET}") as server:
        with server.client() as client:
            topics = [
                CreatableTopic(
                    name, 1, 1, configs=[CreatableTopicConfig(key, value) for key, value in configs.items()]
                )
                for name, configs in TOPICS.items()
            ]
            answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
            assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}
        yield server


def produce(topic: str, *batches: bytes, acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=memoryview(bytearray(batch))) for batch in batches]
    topics = [TopicProduceData(topic, partition_data=[each]) for each in data]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)


def codes(client: RawClient, topic: str, *batches: bytes) -> list[int]:
    answer = client.ask(produce(topic, *batches), 9)
    return [partition.error_code for topic in answer.responses for partition in topic.partition_responses]


def records_from(client: RawClient, topic: str, offset: int) -> list[Record]:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 * MIB)
    request = FetchRequest(
        min_bytes=1, max_bytes=50 * MIB, topics=[FetchTopic(topic, partitions=[partition])]
    )
    (found,) = client.ask(request, 11).responses[0].partitions
    data = bytes(found.records)
    return [record for start, _ in iter_batches(data) for record in iter_records(data[start:])]


def bomb(megabytes: int, codec: int = compression.ZSTD) -> bytes:
    return build_batch([Record(1, b"key", bytes(megabytes * MIB))], codec=codec)


def many(count: int, codec: int, key: bytes | None = b"k") -> bytes:
    return build_batch([Record(1, key, b"v") for _ in range(count)], codec=codec)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("codec", range(5), ids=compression.CODEC_NAMES)
def test_large_batches_are_appended_in_order(server: ServerProcess, topic: str, codec: int) -> None:
    with server.client(60) as client:
        start = client.ask(produce(topic, many(1, codec)), 9)
        offset = start.responses[0].partition_responses[0].base_offset
        for number in range(5):  # large and small ones, without waiting for an answer
            batch = build_batch(
                [Record(1, b"%d" % number, b"%d" % index) for index in range(3000 if number % 2 else 1)],
                codec=codec,
            )
            client.send(produce(topic, batch), 9)
        answers = [client.receive() for _ in range(5)]
        assert [a.responses[0].partition_responses[0].error_code for a in answers] == [0] * 5
        found = [record.key for record in records_from(client, topic, offset + 1)]
        assert found == [b"0"] + [b"1"] * 3000 + [b"2"] + [b"3"] * 3000 + [b"4"]


def test_a_record_without_a_key_among_many_is_found(server: ServerProcess) -> None:
    with server.client(60) as client:
        assert codes(client, "compacted", many(5000, compression.ZSTD, key=None)) == [
            ErrorCode.INVALID_RECORD
        ]
        mixed = [many(1, 0), many(5000, compression.GZIP, key=None), many(5000, compression.LZ4), many(1, 0)]
        assert codes(client, "compacted", *mixed) == [0, ErrorCode.INVALID_RECORD, 0, 0]


def test_more_than_a_batch_may_hold_is_refused(server: ServerProcess) -> None:
    with server.client(60) as client:
        large = bomb(130)
        assert len(large) < 20_000
        (code,) = codes(client, "compacted", large)
        assert code != ErrorCode.NONE
        assert codes(client, "plain", large) == [0]  # nobody looks into it


def test_with_acks_0_what_takes_long_comes_before_what_follows(server: ServerProcess) -> None:
    with server.client(60) as client:
        first = (
            client.ask(produce("compacted", many(1, 0)), 9).responses[0].partition_responses[0].base_offset
        )
        client.send_unanswered(produce("compacted", many(3000, compression.ZSTD, key=b"long"), acks=0), 9)
        assert codes(client, "compacted", many(1, 0, key=b"short")) == [0]
        found = [record.key for record in records_from(client, "compacted", first + 1)]
        assert found == [b"long"] * 3000 + [b"short"]


def test_thirty_bombs_at_once_leave_others_their_turn_and_the_memory_bounded(server: ServerProcess) -> None:
    small, large = many(1, 0), bomb(100)
    before = server.memory_bytes()
    waits: list[float] = []
    peak = 0
    with ExitStack() as stack:
        attackers = [stack.enter_context(server.client(120)) for _ in range(30)]
        honest = stack.enter_context(server.client(120))
        for attacker in attackers:
            attacker.send(produce("compacted", large), 9)
        done = threading.Event()

        def receive() -> None:
            for attacker in attackers:
                attacker.receive()
            done.set()

        receiver = threading.Thread(target=receive)
        receiver.start()
        begin = time.monotonic()
        while not done.is_set():
            sent = time.monotonic()
            assert codes(honest, "compacted", small) == [0]
            waits.append(time.monotonic() - sent)
            peak = max(peak, server.memory_bytes() - before)
        took = time.monotonic() - begin
        receiver.join()
    # One of them holds 100 MB decompressed, whatever the budget; not thirty of them.
    assert peak < 400 * MIB
    assert len(waits) > 30
    assert max(waits) < max(took / 4, 0.5)
