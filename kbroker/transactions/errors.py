"""How requests of different versions tell clients what the transaction coordinator refuses.

A client knows the codes of its time. What newer ones call PRODUCER_FENCED (KIP-588) was
INVALID_PRODUCER_EPOCH before. A partition that is not part of the transaction is TRANSACTION_ABORTABLE to
those who know it (KIP-890) and INVALID_TXN_STATE to the others.
"""

from __future__ import annotations

from kbroker.coordinators.transactions.errors import (
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
    TransactionError,
)
from kbroker.protocol.errors import ErrorCode
from kbroker.storage.errors import InvalidProducerEpoch


def fenced_code(code: ErrorCode, knows_producer_fenced: bool) -> ErrorCode:
    """The code for a request to the coordinator."""
    if code == ErrorCode.PRODUCER_FENCED and not knows_producer_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def refusal_of_write(error: TransactionError, knows_transaction_abortable: bool) -> Exception:
    """What somebody who wants to write into a partition is told, when the coordinator refuses it."""
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(str(error))
    if isinstance(error, TransactionAbortable) and not knows_transaction_abortable:
        return InvalidTxnState("the partition is not part of the transaction")
    return error
