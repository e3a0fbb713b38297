"""Transactional requests to a whole broker without sockets, and what a committed reader makes of a log."""

from __future__ import annotations

from typing import Any

from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
from kbroker.coordinators.transactions.environment import TransactionEnvironment
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kbroker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kbroker.protocol.messages.end_txn import EndTxnRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from kbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kbroker.protocol.records import ControlType, build_batch, iter_batches, iter_records, parse_control
from kbroker.protocol.records.codec import Record
from kbroker.storage.interface import Log, Slice
from kbroker.transactions.markers import TransactionMarkers
from tests.handlers.conftest import Cluster
from tests.support.late_logs import LateLog

from .support import SlowStore

READ_COMMITTED = 1


class TransactionalClient:
    """A producer with a transactional id. Answers are as they come: responses, or Pendings of them."""

    def __init__(self, cluster: Cluster, transactional_id: str = "id") -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.producer = ProducerIdAndEpoch(-1, -1)
        self._sequences: dict[tuple[str, int, int], int] = {}

    def init(self, timeout_ms: int = 60_000) -> ProducerIdAndEpoch:
        for _ in range(3):  # an open transaction is aborted first
            answer = self.cluster.send(InitProducerIdRequest(self.transactional_id, timeout_ms), 4)
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert answer.error_code == 0, answer
        self.producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        return self.producer

    def add(self, topic: str, *partitions: int) -> Any:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, list(partitions or (0,)))],
        )
        return self.cluster.send(request, 3)

    def produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 12) -> Any:
        key = (topic, partition, self.producer.producer_epoch)
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + len(values)
        batch = build_batch(
            [Record(self.cluster.now_ms, None, value) for value in values],
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(partition, batch)])
        request = ProduceRequest(self.transactional_id, acks=-1, timeout_ms=1000, topic_data=[data])
        return self.cluster.send(request, version)

    def add_offsets(self, group: str) -> Any:
        request = AddOffsetsToTxnRequest(self.transactional_id, *self.producer, group)
        return self.cluster.send(request, 3)

    def commit_offset(self, group: str, topic: str, offset: int, version: int = 5) -> Any:
        partition = TxnOffsetCommitRequestPartition(0, offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(topic, [partition])],
        )
        return self.cluster.send(request, version)

    def end(self, *, commit: bool = True, version: int = 5) -> Any:
        request = EndTxnRequest(self.transactional_id, *self.producer, commit)
        answer = self.cluster.send(request, version)
        if not isinstance(answer, Pending):
            self.ended(answer)
        return answer

    def ended(self, answer: Any) -> None:
        """Go on with what the answer to EndTxn says."""
        if not answer.error_code and answer.producer_id >= 0:
            self.producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def produce_error(answer: Any) -> int:
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return int(partition.error_code)


def fetch(
    cluster: Cluster,
    topic: str,
    *,
    offset: int = 0,
    committed: bool = True,
    max_wait_ms: int = 0,
    partition: int = 0,
) -> Any:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED if committed else 0,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    return cluster.send(request, 11)


def fetched_offset(cluster: Cluster, group: str, topic: str, *, require_stable: bool) -> tuple[int, int]:
    """Error code and offset."""
    wanted = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])])
    request = OffsetFetchRequest(groups=[wanted], require_stable=require_stable)
    (answer,) = cluster.send(request, 9).groups
    (partition,) = answer.topics[0].partitions
    return partition.error_code, partition.committed_offset


def committed_values(log: Log) -> list[bytes]:
    """What a read_committed consumer gets: it skips what the aborted list and the markers tell it to."""
    log = log.inner if isinstance(log, LateLog) else log
    found = log.read(log.log_start_offset, 1 << 30, committed=True)
    assert isinstance(found, Slice)
    waiting = sorted(found.aborted, key=lambda aborted: aborted.first_offset)
    aborted: set[int] = set()
    values: list[bytes] = []
    data = b"".join(bytes(buffer) for buffer in found.buffers)
    for position, header in iter_batches(data):
        batch = memoryview(data)[position : position + header.size_bytes]
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborted.add(waiting.pop(0).producer_id)
        if header.is_control:
            marker = parse_control(batch)
            if marker is not None and marker.type == ControlType.ABORT:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            values += [record.value or b"" for record in iter_records(batch)]
    return values


def use_slow_store(cluster: Cluster, store: SlowStore | None = None) -> SlowStore:
    """From now on what the coordinator stores is stored when the test says so."""
    broker = cluster.broker
    store = store or SlowStore()

    def allocate() -> Pending[int]:
        allocated = broker.producer_ids.allocate()
        return allocated if isinstance(allocated, Pending) else Pending.resolved(allocated)

    broker.transactions = TransactionCoordinator(
        TransactionEnvironment(store, TransactionMarkers(broker), allocate, lambda: 2)
    )
    broker.transactions.load(cluster.now_ms)
    return store
