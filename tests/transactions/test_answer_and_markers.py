"""EndTxn to a real process: it is answered before the markers are written, and nobody can tell.

What was answered survives a kill before the markers; who asks after the answer sees the transaction and may
begin the next one; a partition that cannot take its marker then gets it later.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.end_txn import EndTxnRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from kbroker.protocol.messages.list_transactions import ListTransactionsRequest
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess, eventually

from .broker_support import READ_COMMITTED

TOPIC = "topic"
PARTITIONS = 3
VERSIONS = pytest.mark.parametrize("version", [1, 2], ids=["version 1", "version 2"])
MODES = pytest.mark.parametrize("mode", [(), ("--fsync",)], ids=["default", "fsync"])


class Producer:
    """A transactional producer of either version: every transaction writes one batch to each partition."""

    def __init__(self, client: RawClient, version: int) -> None:
        self.client = client
        self.version = version
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        initialized = client.ask(InitProducerIdRequest("id", 60_000), 4)
        self.producer_id, self.epoch = initialized.producer_id, initialized.producer_epoch
        self.sequence = 0

    def write(self) -> list[int]:
        """The error codes of the partitions."""
        if self.version == 1:
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="id",
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(TOPIC, list(range(PARTITIONS)))],
            )
            self.client.ask(added, 3)
        batch = build_batch(
            [Record(time.time_ns() // 1_000_000, None, b"value")],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        data = [PartitionProduceData(partition, batch) for partition in range(PARTITIONS)]
        topics = [TopicProduceData(name=TOPIC, partition_data=data)]
        request = ProduceRequest("id", acks=-1, timeout_ms=10_000, topic_data=topics)
        (topic,) = self.client.ask(request, 12 if self.version == 2 else 11).responses
        return [partition.error_code for partition in topic.partition_responses]

    def end(self, *, commit: bool = True) -> int:
        request = EndTxnRequest("id", self.producer_id, self.epoch, commit)
        answer = self.client.ask(request, 5 if self.version == 2 else 4)
        if self.version == 2 and not answer.error_code:
            self.epoch = answer.producer_epoch
        else:
            self.sequence += 1
        return int(answer.error_code)


def partitions_from(client: RawClient, offset: int = 0) -> list[Any]:
    """What a committed reader gets of every partition."""
    wanted = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 22)
        for partition in range(PARTITIONS)
    ]
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 24,
        isolation_level=READ_COMMITTED,
        topics=[FetchTopic(topic=TOPIC, partitions=wanted)],
    )
    (topic,) = client.ask(request, 11).responses
    return list(topic.partitions)


def stable_offsets(client: RawClient) -> list[int]:
    return [partition.last_stable_offset for partition in partitions_from(client)]


@VERSIONS
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_what_was_answered_survives_a_kill_before_the_markers(
    tmp_path: Path, version: int, commit: bool
) -> None:
    dying = "tests.transactions.dies_before_markers"
    with ServerProcess("--data", str(tmp_path), module=dying) as server, server.client() as client:
        producer = Producer(client, version)
        assert producer.write() == [0] * PARTITIONS
        assert producer.end(commit=commit) == ErrorCode.NONE
        assert server.wait() == -9
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        for partition in partitions_from(client):
            assert partition.last_stable_offset == partition.high_watermark == 2
            assert len(partition.aborted_transactions) == (0 if commit else 1)
        producer.client = client
        assert producer.write() == [0] * PARTITIONS
        assert producer.end() == ErrorCode.NONE
        assert stable_offsets(client) == [4] * PARTITIONS


@MODES
@VERSIONS
def test_who_asks_after_the_answer_sees_the_transaction(
    tmp_path: Path, version: int, mode: tuple[str, ...]
) -> None:
    server = ServerProcess("--data", str(tmp_path), *mode)
    with server, server.client() as client, server.client() as reader:
        producer = Producer(client, version)
        for number in range(50):
            assert producer.write() == [0] * PARTITIONS  # at once, never refused
            assert producer.end() == ErrorCode.NONE
            assert stable_offsets(reader) == [2 * number + 2] * PARTITIONS


def test_markers_are_not_repeated_after_a_clean_stop(tmp_path: Path) -> None:
    with ServerProcess("--data", str(tmp_path)) as server:
        with server.client() as client:
            producer = Producer(client, version=2)
            producer.write()
            producer.end()
        assert server.stop() == 0
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        assert stable_offsets(client) == [2] * PARTITIONS


@VERSIONS
def test_a_marker_that_finds_no_room_after_the_answer_is_written_later(tmp_path: Path, version: int) -> None:
    full = tmp_path / "full"
    server = ServerProcess(
        "--data",
        str(tmp_path / "data"),
        module="tests.transactions.no_room_for_logs",
        env={"NO_ROOM": str(full)},
    )
    with server, server.client() as client:
        producer = Producer(client, version)
        assert producer.write() == [0] * PARTITIONS
        full.touch()
        assert producer.end() == ErrorCode.NONE
        assert stable_offsets(client) == [0] * PARTITIONS
        (listed,) = client.ask(ListTransactionsRequest(), 0).transaction_states
        assert listed.transaction_state == "PrepareCommit"
        assert set(producer.write()) <= {
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.NOT_ENOUGH_REPLICAS,  # what is sent again, before version 2
        }
        full.unlink()
        eventually(lambda: stable_offsets(client) == [2] * PARTITIONS)
        assert producer.write() == [0] * PARTITIONS
        assert producer.end() == ErrorCode.NONE
        assert stable_offsets(client) == [4] * PARTITIONS
