"""DeleteRecords 0–2: raise the log start offset of partitions (KIP-107).

-1 stands for the high watermark. An offset below the log start changes nothing. A topic that is only
compacted keeps its records (POLICY_VIOLATION). If a partition is named twice the last offset counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, after, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kbroker.requests.long_requests import Steps, each_of, lazily

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.storage.interface import Log

_HIGH_WATERMARK = -1
_NO_OFFSET = -1

Part = DeleteRecordsPartitionResult | Pending[DeleteRecordsPartitionResult]


def handle(
    broker: Broker, request: DeleteRecordsRequest, context: RequestContext
) -> Steps[DeleteRecordsResponse]:
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            offsets.setdefault(topic.name, {})[partition.partition_index] = partition.offset
        yield None
    found = yield from each_of(
        ((name, partitions.items()) for name, partitions in offsets.items()), partial(_look_up, broker)
    )
    return DeleteRecordsResponse(topics=lazily(found, lambda of: DeleteRecordsTopicResult(*of)))


def _look_up(broker: Broker, topic: str, asked: tuple[int, int]) -> Part:
    partition, offset = asked
    failed = partial(_failed, partition)
    try:
        log = broker.find_log(topic, partition)
        if log.config.cleanup_policy == {"compact"}:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        refreshed = log.refresh()
        if refreshed is None:
            return _delete(log, partition, offset)
    except Exception as error:
        return failed(error)
    return after(refreshed, lambda _: _delete(log, partition, offset), otherwise=failed)


def _delete(log: Log, partition: int, offset: int) -> Part:
    if offset == _HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return mapped(
        log.delete_records_before(offset),
        lambda low_watermark: DeleteRecordsPartitionResult(partition, low_watermark),
        otherwise=partial(_failed, partition),
    )


def _failed(partition: int, error: Exception) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition, _NO_OFFSET, describe(error)[0])
