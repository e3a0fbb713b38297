"""DeleteRecords 0–2: raise the log start offset of partitions (KIP-107).

-1 stands for the high watermark. An offset below the log start changes nothing. A topic that is only
compacted keeps its records (POLICY_VIOLATION). If a partition is named twice the last offset counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.deletion import delete_records
from kbroker.pending import Pending, mapped
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
    from kbroker.requests.resources import Resources

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
        ((name, partitions.items()) for name, partitions in offsets.items()),
        partial(_delete, broker.resources(context)),
    )
    return DeleteRecordsResponse(topics=lazily(found, lambda of: DeleteRecordsTopicResult(*of)))


def _delete(resources: Resources, topic: str, asked: tuple[int, int]) -> Part:
    partition, offset = asked
    failed = partial(_failed, partition)
    try:
        deleted = delete_records(resources, topic, partition, offset)
    except Exception as error:
        return failed(error)
    return mapped(
        deleted, lambda low_watermark: DeleteRecordsPartitionResult(partition, low_watermark), failed
    )


def _failed(partition: int, error: Exception) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition, _NO_OFFSET, describe(error)[0])
