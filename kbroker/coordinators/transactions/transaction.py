"""The transaction of one transactional id: a value, and the values it may change into.

    from                        event                                                   to
    Empty, Complete*            InitProducerId: the epoch rises, or a new producer id   Empty
    Empty, Complete*, Ongoing   AddPartitionsToTxn, AddOffsetsToTxn, and from           Ongoing
                                version 2 on the first write to a partition
    Ongoing                     EndTxn commit                                           PrepareCommit
    Ongoing                     EndTxn abort                                            PrepareAbort
    Ongoing                     timeout, or InitProducerId of another producer:         PrepareAbort
                                the epoch rises (PrepareEpochFence in passing)
    Empty, Complete*            EndTxn abort, from version 2 on                         PrepareAbort
    PrepareCommit               the markers are in all logs                             CompleteCommit
    PrepareAbort                the markers are in all logs                             CompleteAbort
    Empty, Complete*            unused for transactional.id.expiration.ms               Dead

Once stored, a Prepare state is decided: it ends in its Complete state, whatever happens. PrepareEpochFence
and Dead are never stored; they exist because clients may ask for them by name.

Version 2 (KIP-890): every end of a transaction raises the producer epoch, so that nothing late of one
transaction can get into the next. The last epoch is kept for fencing: when epoch 32766 ends, the producer
goes on with a new producer id (`next_producer_id`, once complete) and epoch 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from kbroker.coordinators.transactions.errors import ProducerFenced

NO_PRODUCER_ID = -1
NO_EPOCH = -1
MAX_EPOCH = 2**15 - 1
EPOCH_BUMP_VERSION = 2
"""The transaction version from which on the end of a transaction raises the epoch."""


class TransactionState(StrEnum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


_PREPARED = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))
_IDLE = frozenset((TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT))

_FROM = {
    TransactionState.EMPTY: _IDLE,
    TransactionState.ONGOING: _IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset((TransactionState.ONGOING,)),
    TransactionState.PREPARE_ABORT: _IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset((TransactionState.PREPARE_COMMIT,)),
    TransactionState.COMPLETE_ABORT: frozenset((TransactionState.PREPARE_ABORT,)),
}


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


def is_exhausted(producer_epoch: int) -> bool:
    """Whether no client may get a higher epoch of this producer id: the very last one is for fencing."""
    return producer_epoch >= MAX_EPOCH - 1


@dataclass(frozen=True, slots=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    last_update_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change: it differs only right after a new one was given out."""
    next_producer_id: int = NO_PRODUCER_ID
    """Of a prepared transaction: the producer id to go on with once it is complete."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch from which the current one was raised, for requests sent again; -1: none may be."""
    transaction_version: int = 0
    """Of whoever began or ended the transaction."""

    @classmethod
    def new(cls, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
        """What InitProducerId starts from; its first epoch will be 0."""
        return cls(transactional_id, producer_id, NO_EPOCH, timeout_ms, now_ms)

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def is_prepared(self) -> bool:
        return self.state in _PREPARED

    @property
    def is_idle(self) -> bool:
        return self.state in _IDLE

    @property
    def commits(self) -> bool:
        """Of a prepared transaction: which way it was decided."""
        return self.state is TransactionState.PREPARE_COMMIT

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    def is_timed_out(self, now_ms: int) -> bool:
        return self.state is TransactionState.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        return self.is_idle and self.last_update_ms <= now_ms - expiration_ms

    # InitProducerId

    def with_new_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """For a producer that starts, or (KIP-360) goes on after an error with the epoch that it has."""
        epoch = self.producer_epoch
        if expected_epoch is None:
            epochs = (epoch + 1, NO_EPOCH)
        elif epoch in (NO_EPOCH, expected_epoch):
            epochs = (epoch + 1, epoch)
        elif expected_epoch == self.last_producer_epoch:
            epochs = (epoch, self.last_producer_epoch)  # asked again
        else:
            raise ProducerFenced(f"epoch {expected_epoch} is over, the current one is {epoch}")
        return self._initialized(self.producer_id, *epochs, timeout_ms, now_ms)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keep_last_epoch: bool
    ) -> Transaction:
        last_epoch = self.producer_epoch if keep_last_epoch else NO_EPOCH
        return self._initialized(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _initialized(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transaction:
        return self._changed(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=-1,
        )

    # in and after the transaction

    def with_partitions(self, added: Iterable[TopicPartition], version: int, now_ms: int) -> Transaction:
        return self._changed(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions.union(added),
            start_ms=now_ms if self.is_idle else self.start_ms,
            transaction_version=version,
        )

    def prepared(self, *, commit: bool, version: int, next_producer_id: int, now_ms: int) -> Transaction:
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if version >= EPOCH_BUMP_VERSION:
            epoch, last_epoch = min(epoch + 1, MAX_EPOCH), epoch
        return self._changed(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            start_ms=now_ms if self.is_idle else self.start_ms,
            transaction_version=version,
        )

    def fenced(self, *, version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """Aborted by the coordinator, at an epoch above that of the producer that began it."""
        if version >= EPOCH_BUMP_VERSION:
            return self.prepared(
                commit=False, version=version, next_producer_id=next_producer_id, now_ms=now_ms
            )
        return self._changed(
            TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_EPOCH,
            transaction_version=version,
        )

    def completed(self, now_ms: int) -> Transaction:
        rotated: dict[str, Any] = {}
        if self.next_producer_id != NO_PRODUCER_ID:
            rotated = {"producer_id": self.next_producer_id, "producer_epoch": 0}
        return self._changed(
            TransactionState.COMPLETE_COMMIT if self.commits else TransactionState.COMPLETE_ABORT,
            now_ms,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            **rotated,
        )

    def _changed(self, state: TransactionState, now_ms: int, **fields: Any) -> Transaction:
        if self.state not in _FROM[state]:
            raise AssertionError(f"{self.transactional_id}: {state} does not follow {self.state}")
        return replace(
            self, state=state, last_update_ms=now_ms, previous_producer_id=self.producer_id, **fields
        )
