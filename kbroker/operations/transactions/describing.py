"""The transactions there are, whoever began them: listed, described, and aborted by administrators.

A transaction's id is its transactional id with the producer id and epoch that it was begun with. So who holds
an id means this one transaction, and none that somebody else begins with the transactional id later.

As in Kafka: DESCRIBE on the transactional id to see it, WRITE to abort it. A transactional id that the broker
made up for somebody (`own_ids.py`) is theirs without that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import nsmallest
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kbroker.coordinators.transactions.errors import TransactionalIdNotFound
from kbroker.coordinators.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    MAX_EPOCH,
    NO_EPOCH,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)
from kbroker.operations.transactions.errors import NoSuchTransaction, OnlyAbort, TransactionOver
from kbroker.operations.transactions.own_ids import is_of
from kbroker.pending import wait
from kbroker.protocol.errors import ErrorCode
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

_PER_PAUSE = 500
_OPEN = (TransactionState.EMPTY, TransactionState.ONGOING)
_NOT_BEGUN = "The transaction was not begun by you, or not since the broker was started last."


class TransactionId(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch

    def __str__(self) -> str:
        return f"{self.transactional_id}:{self.producer.producer_id}:{self.producer.producer_epoch}"


def parsed_id(text: str) -> TransactionId:
    transactional_id, *numbers = text.rsplit(":", 2)
    if len(numbers) == 2 and all(each.isascii() and each.isdecimal() and len(each) < 20 for each in numbers):
        found = TransactionId(transactional_id, ProducerIdAndEpoch(*map(int, numbers)))
        if transactional_id and found.producer.producer_epoch <= MAX_EPOCH and str(found) == text:
            return found
    raise NoSuchTransaction(text)


class DescribedTransaction(NamedTuple):
    id: TransactionId
    state: TransactionState
    timeout_ms: int
    start_ms: int = -1
    """Since when something is part of it; -1: nothing is."""
    topics: Mapping[str, Sequence[int]] = MappingProxyType({})
    """The partitions that take part in it; those of `__consumer_offsets` stand for groups' offsets."""
    reason: str = ""
    """Why it was ended without its user; "": it was not, or that is not known."""


class TransactionPage(NamedTuple):
    transactions: list[DescribedTransaction]
    """Sorted by id, without topics."""
    more: bool


def list_transactions(
    resources: Resources,
    *,
    limit: int,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    duration_ms: int = -1,
    prefix: str = "",
    after: str = "",
) -> Steps[TransactionPage]:
    """The last transaction of each transactional id behind ``after``, as far as the caller may see them.

    ``duration_ms``: only what is open for longer than that; negative: whatever.
    """
    now_ms = resources.broker.clock()
    listed = resources.own_transactions().list_transactions(states, producer_ids, duration_ms, now_ms)
    found: list[Transaction] = []
    for count, transaction in enumerate(listed):
        name = transaction.transactional_id
        wanted = name > after and name.startswith(prefix) and not (duration_ms >= 0 and transaction.is_idle)
        if wanted and _may_see(resources, name):
            found.append(transaction)
        if count % _PER_PAUSE == _PER_PAUSE - 1:
            yield None
    first = nsmallest(limit + 1, found, key=lambda transaction: transaction.transactional_id)
    return TransactionPage([_described(each, each.state) for each in first[:limit]], len(first) > limit)


def describe(resources: Resources, id_: TransactionId) -> DescribedTransaction:
    """What is known of this one. Raises where a newer one hides what became of it."""
    transaction = _known(resources, id_, AclOperation.DESCRIBE)
    state = what_became_of(transaction, id_.producer)
    if state is None:
        raise _overtaken(id_)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in transaction.partitions:
        topics[topic].append(partition)
    seen = [topic for topic in sorted(topics) if resources.may_topic(AclOperation.DESCRIBE, topic)]
    return _described(transaction, state)._replace(
        id=id_, topics={topic: sorted(topics[topic]) for topic in seen}
    )


def abort(resources: Resources, id_: TransactionId) -> Steps[None]:
    """Of anybody's. Its producer is fenced by that."""
    transaction = _known(resources, id_, AclOperation.WRITE)
    state = what_became_of(transaction, id_.producer)
    if state in _OPEN:
        ended = resources.own_transactions().end_transaction(
            id_.transactional_id,
            id_.producer,
            commit=False,
            version=EPOCH_BUMP_VERSION,
            now_ms=resources.broker.clock(),
        )
        yield from wait(ended)
    elif state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT):
        raise TransactionOver("The transaction is committed already.")
    elif state is None:
        raise _overtaken(id_)


def refuse_work(resources: Resources, id_: TransactionId) -> NoReturn:
    """Somebody wants to go on with what they have not begun here, or what is forgotten."""
    state = describe(resources, id_).state
    if state in _OPEN:
        raise OnlyAbort(_NOT_BEGUN)
    raise TransactionOver(f"The transaction is over: {state}. Begin a new one.")


def check_committed(resources: Resources, id_: TransactionId) -> None:
    """For who did not hear how their commit went, of a transaction that this process has not begun, or has
    forgotten. Raises unless it is committed.
    """
    state = what_became_of(_known(resources, id_, AclOperation.WRITE), id_.producer)
    if state in _OPEN:
        raise OnlyAbort(_NOT_BEGUN)
    if state in (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT):
        raise TransactionOver("The transaction is aborted: begin a new one.")
    if state is None:
        raise _overtaken(id_)


def what_became_of(transaction: Transaction, producer: ProducerIdAndEpoch) -> TransactionState | None:
    """The state of the very transaction that was begun with this id and epoch; None: it is over, and newer
    ones hide how it ended.
    """
    if transaction.producer == producer:
        return transaction.state
    after_it = ProducerIdAndEpoch(producer.producer_id, producer.producer_epoch + 1)
    rotated = transaction.previous_producer_id == producer.producer_id and transaction.producer_epoch == 0
    if (
        (transaction.producer == after_it or rotated)
        and transaction.last_producer_epoch == producer.producer_epoch
        and transaction.state not in _OPEN
    ):
        return transaction.state
    return None


def check_rights(
    resources: Resources, transactional_id: str, operation: AclOperation = AclOperation.WRITE
) -> None:
    if not is_of(resources.principal, transactional_id):
        resources.check_transactional_id(operation, transactional_id)


def _known(resources: Resources, id_: TransactionId, operation: AclOperation) -> Transaction:
    check_rights(resources, id_.transactional_id, operation)
    try:
        return resources.own_transactions().describe(id_.transactional_id)
    except TransactionalIdNotFound:
        raise NoSuchTransaction(str(id_)) from None


def _overtaken(id_: TransactionId) -> TransactionOver:
    return TransactionOver(
        f"A newer transaction of {id_.transactional_id} was begun since: this one is over, and what became "
        "of it is not known any more.",
        ErrorCode.PRODUCER_FENCED,
    )


def _described(transaction: Transaction, state: TransactionState) -> DescribedTransaction:
    return DescribedTransaction(_id_of(transaction), state, transaction.timeout_ms, transaction.start_ms)


def _id_of(transaction: Transaction) -> TransactionId:
    """With what it was begun with: from transaction version 2 on its end has raised the epoch."""
    producer = transaction.producer
    if transaction.state not in _OPEN and transaction.last_producer_epoch != NO_EPOCH:
        producer = ProducerIdAndEpoch(transaction.previous_producer_id, transaction.last_producer_epoch)
    return TransactionId(transaction.transactional_id, producer)


def _may_see(resources: Resources, transactional_id: str) -> bool:
    return is_of(resources.principal, transactional_id) or resources.may(
        AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, transactional_id
    )
