"""Whether a client may end its transaction now: EndTxn, for both transaction versions.

Version 1 wants the producer's epoch exactly. From version 2 on (KIP-890) the end of a transaction raises the
epoch, so a request with the epoch that was raised by it is the same request sent again, and one with the
current epoch is about the next transaction, which may be aborted before it has begun. (One whose epoch was
raised by another producer's InitProducerId is fenced, also if that one has ended transactions since.)

                    abort                    commit
                    again     anew           again     anew
    Empty           fenced    prepared       fenced    invalid
    CompleteAbort   done      prepared       invalid   invalid
    CompleteCommit  invalid   prepared       done      invalid
    Ongoing         fenced    prepared       fenced    prepared
    PrepareAbort    wait      fenced         invalid   fenced
    PrepareCommit   invalid   fenced         wait      fenced
"""

from __future__ import annotations

from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)
from kbroker.coordinators.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    MAX_EPOCH,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)

_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


def is_already_done(
    transaction: Transaction, producer: ProducerIdAndEpoch, *, commit: bool, version: int
) -> bool:
    """True: it was ended like this before. False: it is to be prepared now. Else raises why not."""
    if version >= EPOCH_BUMP_VERSION:
        return _with_epoch_bump(transaction, producer, commit)
    if transaction.producer_id != producer.producer_id:
        raise InvalidProducerIdMapping(f"the producer id is {transaction.producer_id}")
    if transaction.producer_epoch != producer.producer_epoch:
        raise ProducerFenced(f"the producer epoch is {transaction.producer_epoch}")
    _check_prepared(transaction, commit)
    if transaction.state is TransactionState.ONGOING:
        return False
    if transaction.state is _COMPLETE[commit]:
        return True
    raise _invalid(transaction, commit)


def _with_epoch_bump(transaction: Transaction, producer: ProducerIdAndEpoch, commit: bool) -> bool:
    epoch = transaction.producer_epoch
    rotated = (
        transaction.previous_producer_id == producer.producer_id
        and producer.producer_epoch == MAX_EPOCH - 1
        and epoch == 0
    )
    if transaction.producer_id != producer.producer_id and not rotated:
        raise InvalidProducerIdMapping(f"the producer id is {transaction.producer_id}")
    anew = producer.producer_epoch == epoch
    again = producer.producer_epoch + 1 == epoch and transaction.last_producer_epoch + 1 == epoch
    if transaction.is_prepared:
        permitted = again
    elif transaction.state in (TransactionState.ONGOING, TransactionState.EMPTY):
        permitted = anew
    else:
        again = again or rotated
        permitted = anew or again
    if not permitted:
        raise ProducerFenced(f"the producer epoch is {epoch}")
    _check_prepared(transaction, commit)
    if transaction.state is TransactionState.ONGOING:
        return False
    if again and transaction.state is _COMPLETE[commit]:
        return True
    if again or commit:
        raise _invalid(transaction, commit)
    return False


def _check_prepared(transaction: Transaction, commit: bool) -> None:
    if transaction.is_prepared:
        if transaction.commits == commit:
            raise ConcurrentTransactions("the transaction is being ended")
        raise _invalid(transaction, commit)


def _invalid(transaction: Transaction, commit: bool) -> InvalidTxnState:
    return InvalidTxnState(f"{transaction.state} does not allow to {'commit' if commit else 'abort'}")
