"""ListOffsets 0–11: the offset that belongs to a timestamp, or to one of the special ones.

-2 is the log start offset, -1 the high watermark (for read_committed the last stable offset, for
another broker or a debugging client the log end offset), -3 the record with the largest timestamp
(version 7, KIP-734). Without tiered storage -4, the local log start (version 8, KIP-405), is -2, and -5
and -6, the last offset in the remote tier and the first not yet there (version 9, KIP-1005; version 11,
KIP-1023), find nothing. Nothing found is -1, not an error. Version 4 adds the leader epoch: the
client's is checked, the found record's returned. Version 0, which Kafka 4 no longer has, asks for a
list: up to so many offsets at or below the timestamp's, in falling order.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Found,
    find_offset,
    visible_end,
)
from kbroker.pending import Pending, after, join
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Log

_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_CONSUMER = -1  # the replica id of a client; brokers send theirs, debugging clients -2
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1

Part = ListOffsetsPartitionResponse | Pending[ListOffsetsPartitionResponse]


def handle(
    broker: Broker, request: ListOffsetsRequest, context: RequestContext
) -> Steps[ListOffsetsResponse | Pending[ListOffsetsResponse]]:
    resources = broker.resources(context)
    asked = [(topic.name, partition) for topic in request.topics for partition in topic.partitions]
    count = Counter((name, partition.partition_index) for name, partition in asked)
    names: list[str] = []
    parts: list[Part] = []
    for name, partition in asked:
        repeated = count[name, partition.partition_index]
        if repeated:
            names.append(name)
            parts.append(_look_up(resources, request, context.api_version, name, partition, repeated > 1))
        if repeated > 1:  # answered once
            count[name, partition.partition_index] = 0
        yield None
    return join(parts, lambda answers: _response(names, answers))


def _look_up(
    resources: Resources,
    request: ListOffsetsRequest,
    version: int,
    name: str,
    asked: ListOffsetsPartition,
    repeated: bool,
) -> Part:
    try:
        if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if repeated:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if asked.timestamp < 0 and version < _SINCE.get(asked.timestamp, version + 1):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        log = resources.log(name, asked.partition_index, AclOperation.DESCRIBE)
        leader_epochs.check(asked.current_leader_epoch, log.leader_epoch)
        refreshed = log.refresh()
    except Exception as error:
        return _failed(asked, error)
    if refreshed is None:
        return _look_into(log, request, version, asked)
    return after(
        refreshed,
        lambda _: _look_into(log, request, version, asked),
        otherwise=partial(_failed, asked),
    )


def _look_into(log: Log, request: ListOffsetsRequest, version: int, asked: ListOffsetsPartition) -> Part:
    try:
        end_offset = _end_offset(log, request)
        found = find_offset(log, asked.timestamp, end_offset)
    except Exception as error:
        return _failed(asked, error)
    if not isinstance(found, Pending):
        return _answer(log, asked, found, end_offset, version)
    return after(
        found,
        lambda found: _answer(log, asked, found, end_offset, version),
        otherwise=partial(_failed, asked),
    )


def _end_offset(log: Log, request: ListOffsetsRequest) -> int:
    """Up to where this client may see."""
    if request.replica_id != _CONSUMER:
        return log.log_end_offset
    return visible_end(log, committed=request.isolation_level == _READ_COMMITTED)


def _answer(
    log: Log, asked: ListOffsetsPartition, found: Found, end_offset: int, version: int
) -> ListOffsetsPartitionResponse:
    response = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if version == 0:
        newest = end_offset if found is None else found.offset
        offsets = sorted({newest, min(newest, log.log_start_offset)}, reverse=True)
        response.old_style_offsets = offsets[: max(asked.max_num_offsets, 0)]
    elif found is not None:
        response.timestamp = found.timestamp
        response.offset = found.offset
        response.leader_epoch = found.leader_epoch if version >= 4 else -1
    return response


def _failed(asked: ListOffsetsPartition, error: Exception) -> ListOffsetsPartitionResponse:
    code, _ = describe(error)
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _response(names: list[str], answers: list[ListOffsetsPartitionResponse]) -> ListOffsetsResponse:
    topics: dict[str, ListOffsetsTopicResponse] = {}
    for name, answer in zip(names, answers, strict=True):
        topics.setdefault(name, ListOffsetsTopicResponse(name=name)).partitions.append(answer)
    return ListOffsetsResponse(topics=list(topics.values()))
