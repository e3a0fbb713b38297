"""A transaction that its user works on over several calls.

    transaction = await settled(broker.publishing.transactions.begin(resources, "orders-1"))
    await settled(transaction.publish(resources, [("orders", NewRecord(...))]))
    await settled(transaction.add_offsets(resources, "shop", [NewOffset("carts", 0, 17)]))
    await settled(transaction.commit(resources))

    open ── commit ──▶ committed
     │ ├── abort, timeout, a call that failed ──▶ aborted
     │ └── somebody else ends it, or begins with its transactional id ──▶ over
     └── a call failed, and the abort could not be stored ──▶ doomed ── abort, timeout ──▶ aborted

Invariants:
- Calls are done one at a time, in the order they came, and to their end whether somebody waits for it or not.
- A call that failed leaves nothing half done: the whole transaction is aborted. So what is committed is all
  that its user asked for.
- Once it has ended it stays so; who ends it the same way again is answered the same.
- It is open for its timeout at most, from its begin, whatever is done in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kbroker.coordinators.transactions.errors import TransactionalIdNotFound, TransactionError
from kbroker.coordinators.transactions.transaction import TransactionState
from kbroker.coordinators.turns import Turns
from kbroker.operations.group_offsets import NO_MEMBER, Member, NewOffset
from kbroker.operations.publishing import NewRecord, Published, placed_in_topics
from kbroker.operations.transactions.describing import (
    DescribedTransaction,
    TransactionId,
    check_rights,
    describe,
    what_became_of,
)
from kbroker.operations.transactions.errors import OnlyAbort, TransactionOver
from kbroker.operations.transactions.producer import TransactionalProducer
from kbroker.pending import Pending, wait
from kbroker.pending import Steps as WaitingSteps
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.records.compression import NONE

if TYPE_CHECKING:
    from kbroker.operations.consumers.consumer import Consumer
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

logger = logging.getLogger("kbroker.transactions")

T = TypeVar("T")

_RETRY_MS = 1000
_COMMITTED, _ABORTED = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


class Ending(NamedTuple):
    committed: bool
    reason: str = ""
    """Why, if its user has not asked for it."""
    code: ErrorCode = ErrorCode.INVALID_TXN_STATE

    def refusal(self) -> TransactionOver:
        """What a user is told who asks for something else."""
        ended = "committed already" if self.committed else "aborted"
        reason = self.reason or f"The transaction is {ended}."
        return TransactionOver(reason if self.committed else f"{reason} Begin a new one.", self.code)


class OpenTransaction:
    __slots__ = (
        "_broker",
        "_cancel",
        "_consumed",
        "_deadline_ms",
        "_doomed",
        "_line",
        "_maker",
        "_on_over",
        "_producer",
        "ending",
        "id",
        "principal",
        "timeout_ms",
    )

    def __init__(
        self,
        resources: Resources,
        id_: TransactionId,
        timeout_ms: int,
        on_over: Callable[[OpenTransaction], None],
    ) -> None:
        self.id = id_
        self.principal = resources.principal
        self.timeout_ms = timeout_ms
        self.ending: Ending | None = None
        """None: it is open."""
        self._broker = resources.broker
        self._maker = resources
        self._on_over = on_over
        self._producer = TransactionalProducer(*id_)
        self._doomed = ""  # why nothing but an abort is possible
        self._line = Turns()
        self._consumed: list[tuple[Consumer, Sequence[NewOffset]]] = []
        self._deadline_ms = self._broker.clock() + timeout_ms
        self._cancel = self._broker.scheduler.after(timeout_ms, self._time_out)

    # in it

    def publish(
        self, resources: Resources, records: Sequence[tuple[str, NewRecord]], *, codec: int = NONE
    ) -> Pending[list[Published]]:
        """Where the records of these topics are now, in their order."""

        def steps() -> Steps[list[Published]]:
            now_ms = self._broker.clock()
            places = yield from placed_in_topics(resources, records, now_ms)
            write = self._producer.write(resources, places, len(records), now_ms=now_ms, codec=codec)
            return (yield from write)

        return self._in_turn(lambda: self._within(resources, steps()))

    def add_offsets(
        self, resources: Resources, group_id: str, offsets: Sequence[NewOffset], member: Member = NO_MEMBER
    ) -> Pending[None]:
        """Offsets that the group has committed when the transaction is.

        ``member``: who has read so far. It is refused if the group has given its partitions to others.
        """
        steps = self._producer.add_offsets(resources, group_id, offsets, member)
        return self._in_turn(lambda: self._within(resources, steps))

    def add_consumed(
        self, resources: Resources, consumer: Consumer, offsets: Sequence[NewOffset] | None = None
    ) -> Pending[Sequence[NewOffset]]:
        """The same for a consumer inside the broker: these offsets, or all that it has delivered."""

        def steps() -> Steps[Sequence[NewOffset]]:
            yield from self._producer.add_group(resources, consumer.group_id)
            member, standing = yield from consumer.standing(offsets)
            yield from self._producer.add_offsets(resources, consumer.group_id, standing, member)
            self._consumed.append((consumer, standing))
            return standing

        return self._in_turn(lambda: self._within(resources, steps()))

    def fail(self, resources: Resources, error: Exception) -> Pending[Any]:
        """What its user wanted in it has failed before it came here: that aborts it, and fails this."""

        def steps() -> Steps[Any]:
            yield None
            raise error

        return self._in_turn(lambda: self._within(resources, steps()))

    # its end

    def commit(self, resources: Resources) -> Pending[None]:
        return self._in_turn(lambda: self._commit(resources))

    def abort(self, resources: Resources) -> Pending[None]:
        return self._in_turn(lambda: self._abort_as_asked(resources))

    def look(self) -> None:
        """Has somebody else ended it?"""
        if self.ending is not None:
            return
        try:
            transaction = self._maker.own_transactions().describe(self.id.transactional_id)
        except TransactionalIdNotFound:
            state = None
        else:
            state = what_became_of(transaction, self.id.producer)
        if state is None:
            reason = f"A newer transaction of {self.id.transactional_id} was begun: this one was aborted."
            self._over(Ending(False, reason, ErrorCode.PRODUCER_FENCED))
        elif state in (TransactionState.PREPARE_COMMIT, _COMMITTED):
            self._over(Ending(True, "The transaction was committed by somebody else."))
        elif state in (TransactionState.PREPARE_ABORT, _ABORTED):
            late = self._broker.clock() >= self._deadline_ms
            reason = "The transaction was aborted by somebody else, an administrator maybe."
            self._over(Ending(False, self._too_late if late else reason))

    def forget(self) -> None:
        """The broker stops."""
        self._cancel()

    def described(self, resources: Resources) -> DescribedTransaction:
        self.look()
        if self.ending is None:
            return describe(resources, self.id)._replace(reason=self._doomed)
        state = _COMMITTED if self.ending.committed else _ABORTED
        return DescribedTransaction(self.id, state, self.timeout_ms, reason=self.ending.reason)

    # steps

    def _in_turn(self, begin: Callable[[], Steps[T]]) -> Pending[T]:
        def steps() -> WaitingSteps[T]:
            running = self._broker.long_requests.run(begin())
            return (yield from wait(running)) if isinstance(running, Pending) else running

        return self._line.take(None, steps)

    def _within(self, resources: Resources, steps: Steps[T]) -> Steps[T]:
        self._check_open()
        try:
            self._check_rights(resources)
            return (yield from steps)
        except Exception as error:
            reason = f"It was aborted because something in it failed: {error}"
            try:
                yield from self._abort(reason)
            except Exception as worse:
                logger.warning("%s: could not be aborted now: %s", self.id, worse)
            if self.ending is not None and self.ending.reason != reason:  # somebody else was faster
                raise self.ending.refusal() from error
            raise

    def _commit(self, resources: Resources) -> Steps[None]:
        if self.ending is not None and self.ending.committed:
            return
        self._check_open()
        self._check_rights(resources)
        if self._producer.begun:
            try:
                yield from self._producer.end(resources, commit=True)
            except TransactionError as error:
                self.look()
                if self.ending is None:
                    raise
                if not self.ending.committed:
                    raise self.ending.refusal() from error
        consumed = self._consumed
        self._over(Ending(committed=True))
        for consumer, offsets in consumed:
            consumer.committed_in_transaction(offsets)

    def _abort_as_asked(self, resources: Resources) -> Steps[None]:
        if self.ending is None:
            self._check_rights(resources)
            yield from self._abort("")
        elif self.ending.committed:
            raise self.ending.refusal()

    def _abort(self, reason: str) -> Steps[None]:
        """From now on nothing else is possible, also if it cannot be stored yet, which is raised."""
        self._doomed = reason or "Its abort was asked for."
        if self._producer.begun:
            try:
                yield from self._producer.end(self._maker, commit=False)
            except TransactionError:
                self.look()
                if self.ending is None:
                    raise
        self._over(Ending(False, reason))

    def _time_out(self) -> None:
        self._in_turn(self._abort_timed_out)

    def _abort_timed_out(self) -> Steps[None]:
        if self.ending is not None:
            return
        try:
            yield from self._abort(self._too_late)
        except Exception as error:
            logger.warning("%s: could not be aborted when its time was over: %s", self.id, error)
            self._cancel = self._broker.scheduler.after(_RETRY_MS, self._time_out)

    @property
    def _too_late(self) -> str:
        return f"It was not ended within {self.timeout_ms} ms, its timeout, and was aborted."

    def _check_open(self) -> None:
        if self.ending is not None:
            raise self.ending.refusal()
        if self._doomed:
            raise OnlyAbort(self._doomed)

    def _check_rights(self, resources: Resources) -> None:
        """They may have been taken away meanwhile."""
        check_rights(resources, self.id.transactional_id)

    def _over(self, ending: Ending) -> None:
        if self.ending is not None:
            return
        self.ending = ending
        self._cancel()
        self._producer = TransactionalProducer(*self.id)  # what it knew of partitions is not needed any more
        self._consumed = []
        self._on_over(self)
