"""Groups: listed, described, their lag; offsets read, committed from outside, reset and deleted.

Members of groups are in consuming.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kbroker.grpc.messages import ours
from kbroker.grpc.records import limit
from kbroker.grpc.statuses import GrpcError, Status, kafka_error
from kbroker.network.awaiting import settled
from kbroker.operations import groups
from kbroker.operations.auditing import audited
from kbroker.operations.group_lag import group_lag
from kbroker.operations.group_offsets import (
    CommittedOffset,
    NewOffset,
    Refusals,
    TopicPartition,
    committed_offsets,
)
from kbroker.operations.group_offsets import commit_offsets as committed_for
from kbroker.operations.group_offsets import delete_offsets as deleted_for
from kbroker.operations.group_reset import ResetTo
from kbroker.operations.group_reset import reset_offsets as reset_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbroker.grpc.call import Call

_MOST: Final = 1000  # of a page
_OFFSET, _REFUSAL = ours("Offset"), ours("Refusal")
_POSITIONS: Final = {1: "earliest", 2: "latest"}


async def commit_offsets(call: Call, request: Any) -> Any:
    resources, group = call.resources, request.group
    offsets = given_offsets(request.offsets)
    refusals = await settled(
        audited(
            resources,
            "GROUP",
            group,
            lambda: committed_for(resources, group, offsets, now_ms=call.now_ms),
        )
    )
    return ours("CommitOffsetsResponse")(refused=shown_refusals(refusals))


async def get_offsets(call: Call, request: Any) -> Any:
    fetched = await settled(committed_offsets(call.resources, request.group))
    offsets = [
        _OFFSET(topic=at.topic, partition=at.partition, offset=found.offset, metadata=found.metadata)
        for at, found in fetched.items()
        if isinstance(found, CommittedOffset)
    ]
    return ours("GetOffsetsResponse")(offsets=offsets)


async def delete_offsets(call: Call, request: Any) -> Any:
    resources, group = call.resources, request.group
    partitions = _given_partitions(request.partitions)
    refusals = await settled(
        audited(resources, "GROUP", group, lambda: deleted_for(resources, group, partitions))
    )
    return ours("DeleteOffsetsResponse")(refused=shown_refusals(refusals))


async def reset_offsets(call: Call, request: Any) -> Any:
    changes = await call.in_turns(
        reset_for(
            call.resources,
            request.group,
            _reset_to(request.to),
            list(request.topics) or None,
            _given_partitions(request.partitions) or None,
            dry_run=request.dry_run,
            now_ms=call.now_ms,
        )
    )
    return ours("ResetOffsetsResponse")(offsets=[change._asdict() for change in changes])


async def list_groups(call: Call, request: Any) -> Any:
    page = groups.list_groups(
        call.resources,
        limit=limit(request.limit, "limit", _MOST, _MOST),
        states=list(request.states),
        types=list(request.types),
        prefix=request.prefix,
        after=request.after,
    )
    listed = [{"id": each.group_id, "type": each.type, "state": each.state} for each in page.groups]
    return ours("ListGroupsResponse")(groups=listed, next=page.groups[-1].group_id if page.more else "")


async def describe_group(call: Call, request: Any) -> Any:
    found = await call.in_turns(groups.describe_group(call.resources, request.group))
    members = [
        {
            "id": each.member_id,
            "instance_id": each.instance_id,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "protocol": each.protocol,
            "topics": list(each.topics),
            "pattern": each.pattern,
            "assignment": [at._asdict() for at in each.assignment],
        }
        for each in found.members
    ]
    return ours("Group")(
        id=found.group_id,
        type=found.type,
        state=found.state,
        assignor=found.assignor,
        epoch=found.epoch,
        members=members,
    )


async def get_lag(call: Call, request: Any) -> Any:
    found = await call.in_turns(group_lag(call.resources, request.group))
    partitions = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "committed_offset": each.committed_offset,
            "log_start_offset": each.log_start_offset,
            "log_end_offset": each.log_end_offset,
            "lag": each.lag,
            "member_id": None if each.member is None else each.member.member_id,
        }
        for each in found.partitions
    ]
    return ours("GetLagResponse")(lag=found.total, partitions=partitions)


async def delete_group(call: Call, request: Any) -> Any:
    await settled(groups.delete_group(call.resources, request.group, now_ms=call.now_ms))
    return ours("DeleteGroupResponse")()


def given_offsets(given: Iterable[Any]) -> list[NewOffset]:
    found = [NewOffset(each.topic, each.partition, each.offset, metadata=each.metadata) for each in given]
    if any(each.offset < 0 or each.partition < 0 for each in found):
        raise GrpcError(Status.INVALID_ARGUMENT, "Partitions and offsets are numbers from 0 on.")
    return found


def shown_refusals(refusals: Refusals) -> list[Any]:
    return [
        _REFUSAL(topic=at.topic, partition=at.partition, error=kafka_error(error))
        for at, error in refusals.items()
    ]


def _given_partitions(given: Iterable[Any]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in given]


def _reset_to(start: Any) -> ResetTo:
    which = start.WhichOneof("at")
    if which == "offset":
        return ResetTo("offset", start.offset)
    if which == "timestamp":
        return ResetTo("time", start.timestamp)
    position = _POSITIONS.get(start.position)
    if position == "earliest":
        return ResetTo("earliest")
    if position == "latest":
        return ResetTo("latest")
    raise GrpcError(Status.INVALID_ARGUMENT, "Say where to: a position, an offset or a timestamp.")
