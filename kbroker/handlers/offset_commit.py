"""OffsetCommit 0–10: keep how far a group has read; answered when it is stored.

1 brings member and generation, 2–4 a retention time, 6 the leader epoch (KIP-320), 7 static members
(KIP-345), 9 member epochs (KIP-848), 10 topic ids (KIP-848; one that nobody knows is UNKNOWN_TOPIC_ID). The
commit timestamp of 1 is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.offsets.commit_grouping import CommitErrors
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.errors import describe
from kbroker.pending import mapped, wait
from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
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
_Refused = dict[str | bytes, ErrorCode]
"""Topics, as the request names them, whose offsets are not committed."""


def handle(
    broker: Broker, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse] | Steps[OffsetCommitResponse]:
    resources = broker.resources(context)
    if sum(len(topic.partitions) for topic in request.topics) > _AT_ONCE or len(request.topics) > _AT_ONCE:
        return _in_pieces(resources, request, context)
    groups = resources.groups(request.group_id, AclOperation.READ)
    version = context.api_version
    refused: _Refused = {}
    commit = _commit_request(request, version, list(_new_offsets(resources, request, version, refused)))
    if refused and not commit.offsets:
        return _answer(request, version, {}, refused)
    committed = groups.offsets.commit(commit, context.now_ms)
    return mapped(committed, partial(_answer, request, version, refused=refused))


def _in_pieces(
    resources: Resources, request: OffsetCommitRequest, context: RequestContext
) -> Steps[OffsetCommitResponse]:
    """Many partitions, committed a few at a time; others have their turn in between."""
    version = context.api_version
    groups = resources.groups(request.group_id, AclOperation.READ)
    errors: CommitErrors = {}
    refused: _Refused = {}
    offsets = _new_offsets(resources, request, version, refused)
    while piece := list(islice(offsets, _AT_ONCE)):
        commit = _commit_request(request, version, piece)
        errors |= yield from wait(groups.offsets.commit(commit, context.now_ms))
        yield None
    return _answer(request, version, errors, refused)


def _commit(resources: Resources, request: OffsetCommitRequest, version: int) -> CommitRequest:
    """For a lane: without the offsets of topics that are refused. Raises ApiError if the group is."""
    resources.check_group(AclOperation.READ, request.group_id)
    return _commit_request(request, version, list(_new_offsets(resources, request, version, {})))


def _new_offsets(
    resources: Resources, request: OffsetCommitRequest, version: int, refused: _Refused
) -> Iterator[NewOffset]:
    for topic in request.topics:
        key = _key(topic, version)
        try:
            if isinstance(key, bytes):
                topic.name = ""
                topic.name = resources.topic(key, AclOperation.READ).name
            else:
                resources.check_topic(AclOperation.READ, key)
        except ApiError as error:
            refused[key] = error.code
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
    code = describe(error)[0]
    return _response(request, lambda topic, partition: code)


def _key(topic: OffsetCommitRequestTopic, version: int) -> str | bytes:
    return topic.topic_id if version >= topic_ids.OFFSET_COMMIT_SINCE else topic.name


def _answer(
    request: OffsetCommitRequest, version: int, errors: CommitErrors, refused: _Refused | None = None
) -> OffsetCommitResponse:
    codes: _Codes = {partition: describe(error)[0] for partition, error in errors.items()}

    def code(topic: OffsetCommitRequestTopic, partition: int) -> int:
        if refused and (refusal := refused.get(_key(topic, version))) is not None:
            return refusal
        return codes.get((topic.name, partition), _NONE)

    return _response(request, code)


def _response(
    request: OffsetCommitRequest, code: Callable[[OffsetCommitRequestTopic, int], int]
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=lazily(
            request.topics,
            lambda topic: OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                lazily(
                    topic.partitions,
                    lambda p: OffsetCommitResponsePartition(
                        p.partition_index, code(topic, p.partition_index)
                    ),
                ),
            ),
        )
    )


lanes = partial(RepeatedCommits, to_commit=_commit, to_response=_answer)
