"""The transaction coordinator: the transactions by transactional id, and what requests and time do to them.

Invariants:
- A change counts once it is stored, never before. What a client is told, a crash does not take back.
- Requests of one transactional id are served one at a time, in the order they came. Where Kafka answers
  CONCURRENT_TRANSACTIONS because a write is under way, the request waits here; it gets that answer when the
  transaction before it cannot be ended yet, or was ended on its behalf.
- EndTxn is answered once the decision is stored, and the partitions are told right after it: before anything
  that is sent after the answer can be served. Where being told is not enough to show it (the disk is waited
  for), it is answered once they show it. A partition that cannot take its marker now does not hold up the
  answer; it is told again until it has, and only then is the transaction complete.
- That it is complete is stored a second later, unless the transactional id has changed again by then: should
  that be lost, the partitions are told once more at the next start, which does no harm.

Every method that takes `now_ms` tells the timers the time. `tick` does what is due; `next_deadline` says
when.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from kbroker.coordinators.transactions.ending import is_already_done
from kbroker.coordinators.transactions.environment import TransactionEnvironment
from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
    TransactionError,
)
from kbroker.coordinators.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    TopicPartition,
    Transaction,
    TransactionState,
    is_exhausted,
)
from kbroker.coordinators.turns import Turns
from kbroker.pending import Pending, Steps, wait

logger = logging.getLogger("kbroker.transactions")

NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_EPOCH)

_RETRY_MS = 1000
_STORE_COMPLETE_MS = 1000
_TIMEOUTS_KEY = ("transaction-timeouts",)
_EXPIRY_KEY = ("transactional-id-expiry",)
_COMPLETE_KEY = ("transactions-complete",)


class TransactionCoordinator:
    def __init__(self, environment: TransactionEnvironment) -> None:
        self._environment = environment
        self._timers = environment.timers
        self._transactions: dict[str, Transaction] = {}
        self.follower: Callable[[str, Transaction | None], None] | None = None
        """Told of every change once it counts; None: the transactional id is gone."""
        self._complete: dict[str, Transaction] = {}  # which the store has as decided only
        self._turns = Turns()

    def load(self, now_ms: int) -> None:
        """Take over what was stored, once, before the first request; end what was decided."""
        self._timers.advance(now_ms)
        for transaction in self._environment.store.load():
            self._transactions[transaction.transactional_id] = transaction
            if transaction.is_prepared:
                logger.info("%s: ending what was decided before the stop", transaction.transactional_id)
                self._tell_again(transaction, transaction.partitions)
        self._schedule_timeouts(now_ms)
        self._schedule_expiry(now_ms)

    def close(self) -> None:
        """Store what is held back."""
        self._store_complete()
        self._environment.store.close()

    # time

    def tick(self, now_ms: int) -> None:
        self._timers.fire(now_ms)

    def next_deadline(self) -> int | None:
        return self._timers.next_deadline()

    # InitProducerId

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, now_ms: int
    ) -> Pending[ProducerIdAndEpoch]:
        """The producer id and epoch to work with; whoever had the transactional id before is fenced.

        `expected`: what the producer has now, if it wants to go on after an error (KIP-360).
        """
        self._timers.advance(now_ms)
        if not transactional_id:
            return Pending.failed(InvalidRequest("the transactional id is empty"))
        if not 0 < timeout_ms <= self._environment.settings.transaction_max_timeout_ms:
            return Pending.failed(InvalidTransactionTimeout(f"{timeout_ms} ms"))
        return self._turns.take(
            transactional_id, lambda: self._init_producer_id(transactional_id, timeout_ms, expected)
        )

    def _init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> Steps[ProducerIdAndEpoch]:
        allocate = self._environment.allocate_producer_id
        now_ms = self._timers.now_ms
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            producer_id = yield from wait(allocate())
            transaction = Transaction.new(transactional_id, producer_id, timeout_ms, now_ms)
        if expected is not None and not _may_continue(transaction, expected):
            raise ProducerFenced(f"the producer id is {transaction.producer_id}")
        if transaction.is_prepared:
            raise ConcurrentTransactions("the transaction before is being ended")
        if transaction.state is TransactionState.ONGOING:
            yield from self._fence(transaction)
            raise ConcurrentTransactions("an open transaction was aborted first")
        if transaction.is_epoch_exhausted and expected in (None, transaction.producer):
            producer_id = yield from wait(allocate())
            initialized = transaction.with_new_producer_id(
                producer_id, timeout_ms, now_ms, keep_last_epoch=expected is not None
            )
        else:
            expected_epoch = None if expected is None else expected.producer_epoch
            initialized = transaction.with_new_epoch(timeout_ms, expected_epoch, now_ms)
        yield from self._save(initialized)
        return initialized.producer

    # AddPartitionsToTxn, AddOffsetsToTxn

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        version: int,
        now_ms: int,
    ) -> Pending[None]:
        """Make the partitions part of the transaction, which begins with the first of them."""
        self._timers.advance(now_ms)
        if not transactional_id:
            return Pending.failed(InvalidRequest("the transactional id is empty"))
        return self._turns.take(
            transactional_id, lambda: self._add_partitions(transactional_id, producer, partitions, version)
        )

    def _add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        version: int,
    ) -> Steps[None]:
        transaction = self._of_producer(transactional_id, producer)
        if transaction.state is not TransactionState.ONGOING or not transaction.partitions.issuperset(
            partitions
        ):
            yield from self._save(transaction.with_partitions(partitions, version, self._timers.now_ms))

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, TransactionError | None]:
        """Which of these partitions are not part of the producer's transaction, and hence take no writes."""
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        transaction = self._of_producer(transactional_id, producer)
        return {
            partition: None
            if partition in transaction.partitions
            else TransactionAbortable(f"{partition.topic}-{partition.partition} is not in the transaction")
            for partition in partitions
        }

    def is_being_ended(self, transactional_id: str) -> bool:
        """Whether its end is decided, but some partition does not know of it yet."""
        transaction = self._transactions.get(transactional_id)
        return transaction is not None and transaction.is_prepared

    def _of_producer(self, transactional_id: str, producer: ProducerIdAndEpoch) -> Transaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != producer.producer_id:
            raise InvalidProducerIdMapping(
                f"{transactional_id} does not belong to producer id {producer.producer_id}"
            )
        if transaction.producer_epoch != producer.producer_epoch:
            raise ProducerFenced(f"the producer epoch is {transaction.producer_epoch}")
        if transaction.is_prepared:
            raise ConcurrentTransactions("the transaction is being ended")
        return transaction

    # EndTxn

    def end_transaction(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool, version: int, now_ms: int
    ) -> Pending[ProducerIdAndEpoch]:
        """Commit or abort; the result is what the producer goes on with (from version 2 on)."""
        self._timers.advance(now_ms)
        if not transactional_id:
            return Pending.failed(InvalidRequest("the transactional id is empty"))
        return self._turns.take(
            transactional_id, lambda: self._end_transaction(transactional_id, producer, commit, version)
        )

    def _end_transaction(
        self, transactional_id: str, producer: ProducerIdAndEpoch, commit: bool, version: int
    ) -> Steps[ProducerIdAndEpoch]:
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise InvalidProducerIdMapping(f"{transactional_id} is not known")
        if is_already_done(transaction, producer, commit=commit, version=version):
            ended = transaction
        else:
            next_producer_id = yield from self._next_producer_id(transaction, version)
            prepared = transaction.prepared(
                commit=commit,
                version=version,
                next_producer_id=next_producer_id,
                now_ms=self._timers.now_ms,
            )
            ended = yield from self._conclude(prepared)
        return ended.producer if version >= EPOCH_BUMP_VERSION else NO_PRODUCER

    def _fence(self, transaction: Transaction) -> Steps[None]:
        """Abort a transaction whose producer is not to go on with it."""
        version = self._environment.transaction_version()
        next_producer_id = yield from self._next_producer_id(transaction, version)
        yield from self._conclude(
            transaction.fenced(version=version, next_producer_id=next_producer_id, now_ms=self._timers.now_ms)
        )

    def _next_producer_id(self, transaction: Transaction, version: int) -> Steps[int]:
        if version < EPOCH_BUMP_VERSION or not transaction.is_epoch_exhausted:
            return NO_PRODUCER_ID
        return (yield from wait(self._environment.allocate_producer_id()))

    def _conclude(self, prepared: Transaction) -> Steps[Transaction]:
        """Store the decision, and have it carried out; returns what the transaction becomes by that."""
        yield from self._save(prepared)
        if self._environment.participants.show_at_once(prepared.partitions):
            self._turns.follow_up(
                prepared.transactional_id, lambda: self._tell(prepared, prepared.partitions)
            )
        else:
            yield from self._tell(prepared, prepared.partitions)
        return prepared.completed(self._timers.now_ms)

    def _tell(self, prepared: Transaction, partitions: Collection[TopicPartition]) -> Steps[None]:
        participants = self._environment.participants
        try:
            left = yield from wait(participants.end(prepared, partitions, self._timers.now_ms))
        except Exception:
            logger.exception("%s: its partitions could not be told its end", prepared.transactional_id)
            left = frozenset(partitions)
        if left:
            self._timers.schedule(
                ("transaction-end", prepared.transactional_id),
                self._timers.now_ms + _RETRY_MS,
                lambda _: self._tell_again(prepared, left),
            )
            return
        completed = prepared.completed(self._timers.now_ms)
        self._changed(completed)
        self._store_later(completed)

    def _tell_again(self, prepared: Transaction, partitions: Collection[TopicPartition]) -> None:
        self._turns.take(prepared.transactional_id, lambda: self._tell(prepared, partitions))

    def _store_later(self, completed: Transaction) -> None:
        """Most producers begin the next transaction before that, which is then stored in its place."""
        self._complete[completed.transactional_id] = completed
        self._timers.schedule_if_absent(
            _COMPLETE_KEY, self._timers.now_ms + _STORE_COMPLETE_MS, lambda _: self._store_complete()
        )

    def _store_complete(self) -> None:
        complete, self._complete = self._complete, {}
        for transaction in complete.values():
            self._environment.store.save(transaction)

    # timeouts

    def _schedule_timeouts(self, now_ms: int) -> None:
        interval_ms = self._environment.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._timers.schedule(_TIMEOUTS_KEY, now_ms + interval_ms, self._abort_timed_out)

    def _abort_timed_out(self, now_ms: int) -> None:
        for transactional_id, transaction in list(self._transactions.items()):
            if transaction.is_timed_out(now_ms):
                self._in_background(transactional_id, self._abort_if_timed_out(transactional_id))
        self._schedule_timeouts(now_ms)

    def _abort_if_timed_out(self, transactional_id: str) -> Steps[None]:
        transaction = self._transactions.get(transactional_id)
        if transaction is not None and transaction.is_timed_out(self._timers.now_ms):
            logger.info("%s: aborted after %d ms", transactional_id, transaction.timeout_ms)
            yield from self._fence(transaction)

    # expiry

    def _schedule_expiry(self, now_ms: int) -> None:
        interval_ms = self._environment.settings.transaction_remove_expired_transaction_cleanup_interval_ms
        self._timers.schedule(_EXPIRY_KEY, now_ms + interval_ms, self._remove_expired)

    def _remove_expired(self, now_ms: int) -> None:
        expiration_ms = self._environment.settings.transactional_id_expiration_ms
        for transactional_id, transaction in list(self._transactions.items()):
            if transaction.is_expired(now_ms, expiration_ms):
                self._in_background(transactional_id, self._remove_if_expired(transactional_id))
        self._schedule_expiry(now_ms)

    def _remove_if_expired(self, transactional_id: str) -> Steps[None]:
        transaction = self._transactions.get(transactional_id)
        expiration_ms = self._environment.settings.transactional_id_expiration_ms
        if transaction is not None and transaction.is_expired(self._timers.now_ms, expiration_ms):
            self._complete.pop(transactional_id, None)
            yield from wait(self._environment.store.delete(transactional_id))
            del self._transactions[transactional_id]
            if self.follower is not None:
                self.follower(transactional_id, None)

    # administration

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """By transactional id."""
        return self._transactions

    def describe(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise TransactionalIdNotFound(transactional_id)
        return transaction

    def open_transactions(self) -> list[Transaction]:
        """Those that have begun and whose markers are not all written yet."""
        return [
            transaction
            for transaction in self._transactions.values()
            if transaction.state is TransactionState.ONGOING or transaction.is_prepared
        ]

    def list_transactions(
        self, states: Collection[str], producer_ids: Collection[int], duration_ms: int, now_ms: int
    ) -> list[Transaction]:
        """Those in one of these states, of one of these producer ids (none: any), and that began more than
        so long ago (negative: whenever).
        """
        return [
            transaction
            for transaction in self._transactions.values()
            if (not states or transaction.state in states)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - transaction.start_ms > duration_ms)
        ]

    # helpers

    def _save(self, transaction: Transaction) -> Steps[None]:
        """Store the change; it counts from then on."""
        completed = self._complete.pop(transaction.transactional_id, None)
        try:
            yield from wait(self._environment.store.save(transaction))
        except Exception as error:
            if completed is not None:
                self._store_later(completed)
            raise CoordinatorNotAvailable(f"the transaction could not be stored: {error}") from error
        self._changed(transaction)

    def _changed(self, transaction: Transaction) -> None:
        self._transactions[transaction.transactional_id] = transaction
        if self.follower is not None:
            self.follower(transaction.transactional_id, transaction)

    def _in_background(self, transactional_id: str, steps: Steps[None]) -> None:
        """Do it unless the transaction is busy; it is tried again with the next interval then."""

        def log_failure(settled: Pending[None]) -> None:
            try:
                settled.result()
            except Exception as error:
                logger.warning("%s: not cleaned up now: %s", transactional_id, error)

        if transactional_id not in self._turns:
            self._turns.take(transactional_id, lambda: steps).then(log_failure)


def _may_continue(transaction: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Whether a producer that has this id may go on: nobody has used the transactional id yet, or it is the
    current id, or the one before it and a new one was due.
    """
    return (
        transaction.producer_epoch == NO_EPOCH
        or expected.producer_id == transaction.producer_id
        or (
            expected.producer_id == transaction.previous_producer_id and is_exhausted(expected.producer_epoch)
        )
    )
