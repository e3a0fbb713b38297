"""What goes wrong, as exceptions: one class for each of Kafka's errors that code in the process may meet.

Their names are Kafka's, and so are their codes. One that has no class of its own here is a KafkaError with
its code. `retriable` is what Kafka's clients go by: the same call may succeed later.

    KafkaError            what Kafka refuses
      UnexpectedOffset    somebody was faster (an InvalidRequest)
    OpenError             the broker could not be opened
    ClosedError           it is not open, or not any more
    WrongLoopError        a call from another thread or event loop than the one it runs on
"""

from __future__ import annotations

from typing import ClassVar

from kbroker.errors import describe, error_code
from kbroker.protocol.errors import ErrorCode
from kbroker.storage.errors import UnexpectedOffset as LogEndsElsewhere


class OpenError(Exception):
    """The broker cannot be opened; the message says why, and what to do about it."""


class ClosedError(RuntimeError):
    """The broker is not open."""


class WrongLoopError(RuntimeError):
    """A broker belongs to the event loop on which it was opened, and to that loop's thread."""


class KafkaError(Exception):
    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    _classes: ClassVar[dict[ErrorCode, type[KafkaError]]] = {}

    def __init__(self, message: str | None = None, code: ErrorCode | None = None) -> None:
        if code is not None:
            self.code = code
        self.message = message or self.code.message
        super().__init__(f"{self.code.name}: {self.message}")

    def __init_subclass__(cls) -> None:
        KafkaError._classes.setdefault(cls.code, cls)

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed when it is tried again."""
        return self.code.retriable


def kafka_error(error: Exception) -> KafkaError | None:
    """As it is told to the code in the process; None: it is not one of Kafka's, but a fault."""
    if isinstance(error, KafkaError):
        return error
    if error_code(error) is None:
        return None
    code, message = describe(error)
    if isinstance(error, LogEndsElsewhere):
        return UnexpectedOffset(message, error.log_end_offset)
    return KafkaError._classes.get(code, KafkaError)(message, code)


class _KafkaErrors:
    """What is refused within a `with` is raised as a KafkaError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            told = kafka_error(error)
            if told is not None and told is not error:
                raise told from error


kafka_errors = _KafkaErrors()


class OffsetOutOfRange(KafkaError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessage(KafkaError):
    code = ErrorCode.CORRUPT_MESSAGE


class UnknownTopicOrPartition(KafkaError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class MessageTooLarge(KafkaError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class OffsetMetadataTooLarge(KafkaError):
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class CoordinatorNotAvailable(KafkaError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class InvalidTopicException(KafkaError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class RecordListTooLarge(KafkaError):
    code = ErrorCode.RECORD_LIST_TOO_LARGE


class InconsistentGroupProtocol(KafkaError):
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupId(KafkaError):
    code = ErrorCode.INVALID_GROUP_ID


class UnknownMemberId(KafkaError):
    code = ErrorCode.UNKNOWN_MEMBER_ID


class TopicAuthorizationFailed(KafkaError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationFailed(KafkaError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ClusterAuthorizationFailed(KafkaError):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class InvalidTimestamp(KafkaError):
    code = ErrorCode.INVALID_TIMESTAMP


class UnsupportedVersion(KafkaError):
    code = ErrorCode.UNSUPPORTED_VERSION


class TopicAlreadyExists(KafkaError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(KafkaError):
    code = ErrorCode.INVALID_PARTITIONS


class InvalidConfig(KafkaError):
    code = ErrorCode.INVALID_CONFIG


class InvalidRequest(KafkaError):
    code = ErrorCode.INVALID_REQUEST


class UnexpectedOffset(InvalidRequest):
    """The record would have got another offset than was expected: nothing is written."""

    def __init__(self, message: str | None, next_offset: int) -> None:
        super().__init__(message)
        self.next_offset = next_offset
        """That the next record gets."""


class PolicyViolation(KafkaError):
    code = ErrorCode.POLICY_VIOLATION


class OutOfOrderSequenceNumber(KafkaError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpoch(KafkaError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnState(KafkaError):
    code = ErrorCode.INVALID_TXN_STATE


class InvalidTransactionTimeout(KafkaError):
    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class ConcurrentTransactions(KafkaError):
    code = ErrorCode.CONCURRENT_TRANSACTIONS


class TransactionalIdAuthorizationFailed(KafkaError):
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class SecurityDisabled(KafkaError):
    code = ErrorCode.SECURITY_DISABLED


class KafkaStorageError(KafkaError):
    code = ErrorCode.KAFKA_STORAGE_ERROR


class NonEmptyGroup(KafkaError):
    code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFound(KafkaError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class TopicDeletionDisabled(KafkaError):
    code = ErrorCode.TOPIC_DELETION_DISABLED


class GroupMaxSizeReached(KafkaError):
    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class GroupSubscribedToTopic(KafkaError):
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class InvalidRecord(KafkaError):
    code = ErrorCode.INVALID_RECORD


class UnstableOffsetCommit(KafkaError):
    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class ThrottlingQuotaExceeded(KafkaError):
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ProducerFenced(KafkaError):
    code = ErrorCode.PRODUCER_FENCED


class TransactionalIdNotFound(KafkaError):
    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class FencedMemberEpoch(KafkaError):
    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpoch(KafkaError):
    code = ErrorCode.STALE_MEMBER_EPOCH


class TransactionAbortable(KafkaError):
    code = ErrorCode.TRANSACTION_ABORTABLE


class InvalidRegularExpression(KafkaError):
    code = ErrorCode.INVALID_REGULAR_EXPRESSION
