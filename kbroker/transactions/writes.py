"""Which transactional batches may be written: a partition takes them only as part of their transaction.

A producer whose transaction is open in the partition's log goes on. Its first batch there asks the
coordinator: up to Produce 11 whether the client has added the partition, from 12 on (KIP-890) to add it. So
does every batch while the end is decided but not all partitions know of it. So nothing of a producer gets
into a log after its transaction ended, where nobody would ever end it, or where it would count as part of it.

A batch that was refused leaves its sequence number behind until the transaction ends: of the batches that a
producer has under way, a later one must not be taken as the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    TransactionError,
)
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TopicPartition
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records.batch import (
    BatchHeader,
)
from kbroker.storage.errors import OutOfOrderSequence
from kbroker.transactions.errors import refusal_of_write

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

_MAX_REFUSED = 10_000

Refusals = dict[tuple[bytes, int], Exception]
"""By topic id and partition."""


class TransactionalBatch(NamedTuple):
    topic: Topic
    partition: int
    log: Log
    header: BatchHeader

    @property
    def key(self) -> tuple[bytes, int]:
        return self.topic.topic_id, self.partition


class ClientKnows(NamedTuple):
    """What the client of a write knows of transactions."""

    adding: bool
    """A batch adds its partition to the transaction (KIP-890)."""
    transaction_abortable: bool
    """The error that says so (KIP-1050)."""


class TransactionalWrites:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # (topic id, partition, producer id) → (epoch, lowest sequence) of batches that were refused
        self._refused: dict[tuple[bytes, int, int], tuple[int, int]] = {}

    def admit(
        self, transactional_id: str, written: Iterable[TransactionalBatch], knows: ClientKnows, now_ms: int
    ) -> Refusals | Pending[Refusals]:
        """Which of the batches may not be written, and why, as far as no log judges that itself."""
        if self._broker.logs.judges_transactions:
            return {}
        batches = list(written)
        producers = {ProducerIdAndEpoch(b.header.producer_id, b.header.producer_epoch) for b in batches}
        if len(producers) > 1:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "a transaction's batches are of one producer"
            )
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
        if not knows.adding:
            if not self._broker.settings["transaction.partition.verification.enable"]:
                return {}
            return self._judge(first, self._verify(transactional_id, producer, first), knows)
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
            refusals.resolve(self._judge(first, dict.fromkeys(map(_name, first), refusal), knows))

        partitions = [_name(batch) for batch in first]
        self._broker.transactions.add_partitions(transactional_id, producer, partitions, 2, now_ms).then(
            added
        )
        return refusals.result() if refusals.done else refusals

    def transaction_ended(self, log: Log, producer_id: int) -> None:
        """The producer's marker is in this log."""
        self._refused.pop((log.topic_id, log.partition, producer_id), None)

    def _verify(
        self, transactional_id: str, producer: ProducerIdAndEpoch, batches: list[TransactionalBatch]
    ) -> dict[TopicPartition, TransactionError | None]:
        partitions = [_name(batch) for batch in batches]
        try:
            return self._broker.transactions.verify_partitions(transactional_id, producer, partitions)
        except TransactionError as error:
            return dict.fromkeys(partitions, error)

    def _judge(
        self,
        batches: list[TransactionalBatch],
        answers: dict[TopicPartition, TransactionError | None],
        knows: ClientKnows,
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
                refusal = _translated(error, knows)
            elif header.base_sequence > lowest or (
                knows.adding
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


def _name(batch: TransactionalBatch) -> TopicPartition:
    return TopicPartition(batch.topic.name, batch.partition)


def _translated(error: TransactionError, knows: ClientKnows) -> Exception:
    """Producers try again after NOT_ENOUGH_REPLICAS, whatever they make of the coordinator's errors."""
    if isinstance(error, CoordinatorNotAvailable) or (
        isinstance(error, ConcurrentTransactions) and not knows.adding
    ):
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"The partition's transaction cannot be verified now: {error}"
        )
    return refusal_of_write(error, knows.transaction_abortable)
