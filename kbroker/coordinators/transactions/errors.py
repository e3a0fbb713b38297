"""What the transaction coordinator refuses, and the error code each case has in Kafka.

TXN_ERRORS is the table that kbroker.errors includes; nothing else in this package knows error codes.
"""

from __future__ import annotations

from kbroker.protocol.errors import ErrorCode


class TransactionError(Exception):
    """Base of everything below."""


class CoordinatorNotAvailable(TransactionError):
    """The change could not be stored; the client tries again."""


class InvalidRequest(TransactionError):
    pass


class InvalidTransactionTimeout(TransactionError):
    """Not positive, or above transaction.max.timeout.ms."""


class InvalidProducerIdMapping(TransactionError):
    """The transactional id is unknown, or belongs to another producer id."""


class ProducerFenced(TransactionError):
    """A newer producer has taken over the transactional id."""


class ConcurrentTransactions(TransactionError):
    """The transaction before is being ended; the client tries again."""


class InvalidTxnState(TransactionError):
    """There is no transaction that this could be done to."""


class TransactionAbortable(TransactionError):
    """The partition is not part of the transaction, which can only be aborted now (KIP-890)."""


class TransactionalIdNotFound(TransactionError):
    pass


TXN_ERRORS: dict[type[BaseException], ErrorCode] = {
    CoordinatorNotAvailable: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    InvalidRequest: ErrorCode.INVALID_REQUEST,
    InvalidTransactionTimeout: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    InvalidProducerIdMapping: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ProducerFenced: ErrorCode.PRODUCER_FENCED,
    ConcurrentTransactions: ErrorCode.CONCURRENT_TRANSACTIONS,
    InvalidTxnState: ErrorCode.INVALID_TXN_STATE,
    TransactionAbortable: ErrorCode.TRANSACTION_ABORTABLE,
    TransactionalIdNotFound: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
}
