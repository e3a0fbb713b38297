"""What a Produce says of one partition: where the batch is, or why it is not there."""

from __future__ import annotations

from kbroker.coordinators.transactions.errors import InvalidTxnState, TransactionError
from kbroker.errors import describe
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse
from kbroker.protocol.records.errors import CorruptRecord, InvalidRecord
from kbroker.storage.errors import InvalidTimestamp, LogDeleted, ProducerError
from kbroker.storage.interface import Appended, Log

# As in Kafka: the log start is told with these refusals only, and of what the producer or the transaction is
# about, only INVALID_TXN_STATE is explained.
_WITH_LOG_START = (InvalidRecord, InvalidTimestamp, ProducerError)
_WITHOUT_MESSAGE = (LogDeleted, ProducerError, TransactionError)


def appended_at(partition: int, appended: Appended) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        partition,
        ErrorCode.NONE,
        appended.base_offset,
        appended.log_append_time_ms,
        appended.log_start_offset,
    )


def when_durable(durable: Pending[None], result: PartitionProduceResponse) -> Pending[None]:
    """Settles when the disk has it; a failure becomes the partition's error."""
    settled: Pending[None] = Pending()

    def done(flush: Pending[None]) -> None:
        try:
            flush.result()
        except Exception as error:
            code, message = describe(error)
            result.error_code, result.error_message, result.base_offset = code, message, -1
        settled.resolve(None)

    durable.then(done)
    return settled


def refused(partition: int, error: BaseException, judge: Log | None = None) -> PartitionProduceResponse:
    """``judge``: the log that refused, if it got as far as that."""
    code, message = describe(error)
    refused = PartitionProduceResponse(partition, code, -1, error_message=message)
    if judge is not None and isinstance(error, _WITH_LOG_START):
        refused.log_start_offset = judge.log_start_offset
    if isinstance(error, InvalidRecord | InvalidTimestamp):
        refused.record_errors = [BatchIndexAndErrorMessage(each, message) for each in error.indexes]
    elif isinstance(error, CorruptRecord):
        refused.error_message = None if judge is not None else message
    elif isinstance(error, _WITHOUT_MESSAGE) and not isinstance(error, InvalidTxnState):
        refused.error_message = None
    return refused
