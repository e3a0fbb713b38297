"""DeleteRecords 0–2: raise the log start offset of partitions (KIP-107).

-1 stands for the high watermark. An offset below the log start changes nothing. A topic that is only
compacted keeps its records (POLICY_VIOLATION). If a partition is named twice the last offset counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kbroker.requests.long_requests import Steps, each

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_HIGH_WATERMARK = -1
_NO_OFFSET = -1


def handle(
    broker: Broker, request: DeleteRecordsRequest, context: RequestContext
) -> Steps[DeleteRecordsResponse]:
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            offsets.setdefault(topic.name, {})[partition.partition_index] = partition.offset
        yield None
    results = []
    for name, partitions in offsets.items():
        deleted = yield from each(partitions.items(), partial(_delete, broker, name))
        results.append(DeleteRecordsTopicResult(name=name, partitions=deleted))
    return DeleteRecordsResponse(topics=results)


def _delete(broker: Broker, topic: str, asked: tuple[int, int]) -> DeleteRecordsPartitionResult:
    partition, offset = asked
    try:
        log = broker.find_log(topic, partition)
        if log.config.cleanup_policy == {"compact"}:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        if offset == _HIGH_WATERMARK:
            offset = log.high_watermark
        if not 0 <= offset <= log.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        low_watermark = log.delete_records_before(offset)
    except Exception as error:
        code, _ = describe(error)
        return DeleteRecordsPartitionResult(partition, _NO_OFFSET, code)
    return DeleteRecordsPartitionResult(partition, low_watermark)
