"""The one table from exceptions of storage, catalog and coordinators to Kafka's error codes."""

from __future__ import annotations

import logging

from kbroker.catalog.errors import CatalogError, CatalogFull
from kbroker.coordinators.groups.errors import GROUP_ERRORS
from kbroker.coordinators.transactions.errors import TXN_ERRORS
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import errors as records
from kbroker.storage import errors as storage

logger = logging.getLogger("kbroker.errors")


_CODES: dict[type[BaseException], ErrorCode] = {
    records.CorruptRecord: ErrorCode.CORRUPT_MESSAGE,
    records.InvalidRecord: ErrorCode.INVALID_RECORD,
    records.UnsupportedCompression: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    storage.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage.UnexpectedOffset: ErrorCode.INVALID_REQUEST,  # no Kafka client says what it expects
    storage.RecordTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    storage.RecordListTooLarge: ErrorCode.RECORD_LIST_TOO_LARGE,
    storage.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    storage.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage.UnknownProducerId: ErrorCode.UNKNOWN_PRODUCER_ID,
    storage.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    storage.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    storage.LogFenced: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.InconsistentTopicId: ErrorCode.KAFKA_STORAGE_ERROR,  # the files are not this topic's
    # Retriable, and the cheapest for clients: they refresh their metadata and try again.
    storage.Shortage: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.ImageFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.LogDeleted: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    CatalogFull: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    CatalogError: ErrorCode.UNKNOWN_SERVER_ERROR,
    **GROUP_ERRORS,
    **TXN_ERRORS,
}


def error_code(error: BaseException) -> ErrorCode | None:
    """The code that clients get for this exception; None if it is not a foreseen one."""
    if isinstance(error, ApiError):
        return error.code
    if isinstance(error, OSError) and error.errno in (*storage.NO_ROOM, *storage.NO_DESCRIPTORS):
        return ErrorCode.KAFKA_STORAGE_ERROR  # wherever it was, it passes
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return None


def describe(error: BaseException) -> tuple[ErrorCode, str | None]:
    """Code and message for one part of an answer. An unforeseen error leaves a traceback in the log."""
    if isinstance(error, ApiError):
        return error.code, error.message
    code = error_code(error)
    if code is None:
        logger.error("an unforeseen error", exc_info=error)
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return code, str(error) or None
