"""What a Produce says of one partition: where the batch is, or why it is not there."""

from __future__ import annotations

from kbroker.coordinators.transactions.errors import InvalidTxnState, TransactionError
from kbroker.errors import describe
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse
from kbroker.protocol.records.errors import CorruptRecord, InvalidRecord
from kbroker.storage.errors import InvalidTimestamp, LogDeleted, ProducerError
from kbroker.storage.interface import Appended, Assigned, Log

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


def when_durable(
    durable: Pending[Assigned | None], result: PartitionProduceResponse, log: Log
) -> Pending[None]:
    """Settles when the batch may be acknowledged, or may not: then the result says so.

    Offsets that the log has given meanwhile are in it, too.
    """
    settled: Pending[None] = Pending()

    def done(acknowledged: Pending[Assigned | None]) -> None:
        try:
            assigned = acknowledged.result()
        except Exception as error:
            _refuse(result, error, log)
        else:
            if assigned is not None:
                result.base_offset = assigned.base_offset
                result.log_append_time_ms = assigned.log_append_time_ms
                result.log_start_offset = assigned.log_start_offset
        settled.resolve(None)

    durable.then(done)
    return settled


def _refuse(result: PartitionProduceResponse, error: Exception, log: Log) -> None:
    """Make the result of a batch that was to be acknowledged a refusal."""
    if result.base_offset < 0:  # the log had not judged it yet
        refusal = refused(result.index, error, log)
        result.log_append_time_ms, result.log_start_offset = -1, refusal.log_start_offset
        result.record_errors = refusal.record_errors
        result.error_code, result.error_message = refusal.error_code, refusal.error_message
    else:
        result.error_code, result.error_message = describe(error)
        result.base_offset = -1


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
