"""Which transactional batches may be written: a partition takes them only as part of their transaction.

A producer whose transaction is open in the partition's log goes on. Its first batch there asks the
coordinator: up to Produce 11 whether the client has added the partition, from 12 on (KIP-890) to add it. So
does every batch while the end is decided but not all partitions know of it. So nothing of a producer gets
into a log after its transaction ended, where nobody would ever end it, or where it would count as part of it.

A batch that was refused leaves its sequence number behind until the transaction ends: of the batches that a
producer has under way, a later one must not be taken as the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    TransactionError,
)
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TopicPartition
from kbroker.pending import Pending
from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records.batch import (
    BATCH_OVERHEAD,
    LOW_ATTRIBUTES_POSITION,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    magic_at,
    read_header,
)
from kbroker.storage.errors import OutOfOrderSequence
from kbroker.transactions.errors import refusal_of_write

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.protocol.messages.produce import ProduceRequest
    from kbroker.requests.context import RequestContext
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

_FIRST_WITH_TRANSACTION_ABORTABLE = 11
_FIRST_THAT_ADDS = 12
_MAX_REFUSED = 10_000

Refusals = dict[tuple[bytes, int], Exception]
"""By topic id and partition."""


class _Batch(NamedTuple):
    topic: Topic
    partition: int
    log: Log
    header: BatchHeader

    @property
    def key(self) -> tuple[bytes, int]:
        return self.topic.topic_id, self.partition


def has_transactional_batches(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) > LOW_ATTRIBUTES_POSITION
                and records[LOW_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT
                and magic_at(records) == MAGIC
            ):
                return True
    return False


class TransactionalWrites:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # (topic id, partition, producer id) → (epoch, lowest sequence) of batches that were refused
        self._refused: dict[tuple[bytes, int, int], tuple[int, int]] = {}

    def admit(self, request: ProduceRequest, context: RequestContext) -> Refusals | Pending[Refusals]:
        """Which of the request's batches may not be written, and why, as far as no log judges that itself."""
        if self._broker.logs.judges_transactions:
            return {}
        version = context.api_version
        batches = list(self._batches(request, version))
        producers = {ProducerIdAndEpoch(b.header.producer_id, b.header.producer_epoch) for b in batches}
        if len(producers) > 1:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "a transaction's batches are of one producer"
            )
        transactional_id = request.transactional_id or ""
        being_ended = self._broker.transactions.is_being_ended(transactional_id)
        first = [
            batch
            for producer in producers
            for batch in batches
            if being_ended or not batch.log.has_ongoing_transaction(*producer)
        ]
        if not first:
            return {}
        (producer,) = producers
        if version < _FIRST_THAT_ADDS:
            if not self._broker.settings["transaction.partition.verification.enable"]:
                return {}
            return self._judge(first, self._verify(transactional_id, producer, first), version)
        refusals: Pending[Refusals] = Pending()

        def added(settled: Pending[None]) -> None:
            refusal: TransactionError | None = None
            try:
                settled.result()
            except TransactionError as error:
                refusal = error
            except Exception as error:
                refusals.fail(error)
                return
            refusals.resolve(self._judge(first, dict.fromkeys(map(_name, first), refusal), version))

        partitions = [_name(batch) for batch in first]
        self._broker.transactions.add_partitions(
            transactional_id, producer, partitions, 2, context.now_ms
        ).then(added)
        return refusals.result() if refusals.done else refusals

    def transaction_ended(self, log: Log, producer_id: int) -> None:
        """The producer's marker is in this log."""
        self._refused.pop((log.topic_id, log.partition, producer_id), None)

    def _batches(self, request: ProduceRequest, version: int) -> Iterator[_Batch]:
        """The transactional batches, as far as they can be written at all."""
        topics = self._broker.topics
        for topic_data in request.topic_data:
            by_id = version >= topic_ids.PRODUCE_SINCE
            topic = topics.get_by_id(topic_data.topic_id) if by_id else topics.get(topic_data.name)
            if topic is None:
                continue
            for data in topic_data.partition_data:
                records = data.records
                if (
                    records is None
                    or len(records) < BATCH_OVERHEAD
                    or magic_at(records) != MAGIC
                    or not 0 <= data.index < topic.partitions
                ):
                    continue
                header = read_header(records)
                if header.is_transactional and header.producer_id >= 0:
                    yield _Batch(topic, data.index, self._broker.log(topic, data.index), header)

    def _verify(
        self, transactional_id: str, producer: ProducerIdAndEpoch, batches: list[_Batch]
    ) -> dict[TopicPartition, TransactionError | None]:
        partitions = [_name(batch) for batch in batches]
        try:
            return self._broker.transactions.verify_partitions(transactional_id, producer, partitions)
        except TransactionError as error:
            return dict.fromkeys(partitions, error)

    def _judge(
        self, batches: list[_Batch], answers: dict[TopicPartition, TransactionError | None], version: int
    ) -> Refusals:
        refusals: Refusals = {}
        for batch in batches:
            header = batch.header
            refused_key = (*batch.key, header.producer_id)
            epoch, lowest = self._refused.pop(refused_key, (header.producer_epoch, header.base_sequence))
            if epoch < header.producer_epoch:
                epoch, lowest = header.producer_epoch, header.base_sequence
            elif epoch == header.producer_epoch:
                lowest = min(lowest, header.base_sequence)
            error = answers[_name(batch)]
            refusal: Exception | None = None
            if error is not None:
                refusal = _translated(error, version)
            elif header.base_sequence > lowest or (
                version >= _FIRST_THAT_ADDS
                and header.base_sequence != 0
                and not batch.log.has_batches_of(header.producer_id)
            ):
                refusal = OutOfOrderSequence(
                    f"producer {header.producer_id}: sequence {header.base_sequence} is not the first"
                )
            if refusal is not None:
                refusals[batch.key] = refusal
                self._refused[refused_key] = (epoch, lowest)
        while len(self._refused) > _MAX_REFUSED:
            del self._refused[next(iter(self._refused))]
        return refusals


def _name(batch: _Batch) -> TopicPartition:
    return TopicPartition(batch.topic.name, batch.partition)


def _translated(error: TransactionError, version: int) -> Exception:
    """Producers try again after NOT_ENOUGH_REPLICAS, whatever they make of the coordinator's errors."""
    if isinstance(error, CoordinatorNotAvailable) or (
        isinstance(error, ConcurrentTransactions) and version < _FIRST_THAT_ADDS
    ):
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"The partition's transaction cannot be verified now: {error}"
        )
    return refusal_of_write(error, version >= _FIRST_WITH_TRANSACTION_ABORTABLE)
