"""OffsetCommit 0–10: keep how far a group has read; answered when it is stored.

1 brings member and generation, 2–4 a retention time, 6 the leader epoch (KIP-320), 7 static members
(KIP-345), 9 member epochs (KIP-848), 10 topic ids (KIP-848; one that nobody knows is UNKNOWN_TOPIC_ID). The
commit timestamp of 1 is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.offsets.commit_grouping import CommitErrors
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.errors import describe
from kbroker.pending import mapped, wait
from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kbroker.requests.long_requests import Steps, lazily
from kbroker.requests.repeated_commit import RepeatedCommits
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_NONE = ErrorCode.NONE
_AT_ONCE = 500  # partitions of one commit that keep others waiting

_Codes = dict[tuple[str, int], ErrorCode]  # by topic and partition


def handle(
    broker: Broker, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse] | Steps[OffsetCommitResponse]:
    resources = broker.resources(context)
    if sum(len(topic.partitions) for topic in request.topics) > _AT_ONCE or len(request.topics) > _AT_ONCE:
        return _in_pieces(resources, request, context)
    groups = resources.groups(request.group_id, AclOperation.READ)
    committed = groups.offsets.commit(_commit(resources, request, context.api_version), context.now_ms)
    return mapped(committed, partial(_answer, request, context.api_version))


def _in_pieces(
    resources: Resources, request: OffsetCommitRequest, context: RequestContext
) -> Steps[OffsetCommitResponse]:
    """Many partitions, committed a few at a time; others have their turn in between."""
    version = context.api_version
    groups = resources.groups(request.group_id, AclOperation.READ)
    errors: CommitErrors = {}
    offsets = _new_offsets(resources, request, version)
    while piece := list(islice(offsets, _AT_ONCE)):
        commit = _commit_request(request, version, piece)
        errors |= yield from wait(groups.offsets.commit(commit, context.now_ms))
        yield None
    return _answer(request, version, errors)


def _commit(resources: Resources, request: OffsetCommitRequest, version: int) -> CommitRequest:
    return _commit_request(request, version, list(_new_offsets(resources, request, version)))


def _new_offsets(resources: Resources, request: OffsetCommitRequest, version: int) -> Iterator[NewOffset]:
    by_id = version >= topic_ids.OFFSET_COMMIT_SINCE
    for topic in request.topics:
        if by_id:
            found = resources.find_topic(topic.topic_id, AclOperation.READ)
            topic.name = found.name if found else ""
            if not found:
                continue
        for partition in topic.partitions:
            yield NewOffset(
                topic.name,
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                topic.topic_id,
            )


def _commit_request(request: OffsetCommitRequest, version: int, offsets: list[NewOffset]) -> CommitRequest:
    return CommitRequest(
        group_id=request.group_id,
        offsets=offsets,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_or_epoch=request.generation_id_or_member_epoch,
        api_version=version,
        retention_ms=request.retention_time_ms,
    )


def refuse(
    request: OffsetCommitRequest, context: RequestContext, error: BaseException
) -> OffsetCommitResponse:
    return _response(request, {}, describe(error)[0])


def _answer(request: OffsetCommitRequest, version: int, errors: CommitErrors) -> OffsetCommitResponse:
    codes: _Codes = {partition: describe(error)[0] for partition, error in errors.items()}
    if version >= topic_ids.OFFSET_COMMIT_SINCE:
        for topic in request.topics:
            if not topic.name:
                codes.update((("", p.partition_index), ErrorCode.UNKNOWN_TOPIC_ID) for p in topic.partitions)
    return _response(request, codes, _NONE)


def _response(request: OffsetCommitRequest, codes: _Codes, otherwise: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=lazily(
            request.topics,
            lambda topic: OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                lazily(
                    topic.partitions,
                    lambda p: OffsetCommitResponsePartition(
                        p.partition_index, codes.get((topic.name, p.partition_index), otherwise)
                    ),
                ),
            ),
        )
    )


lanes = partial(RepeatedCommits, to_commit=_commit, to_response=_answer)
