"""OffsetCommit 0–10: keep how far a group has read; answered when it is stored.

1 brings member and generation, 2–4 a retention time, 6 the leader epoch (KIP-320), 7 static members
(KIP-345), 9 member epochs (KIP-848), 10 topic ids (KIP-848; one that nobody knows is UNKNOWN_TOPIC_ID). The
commit timestamp of 1 is ignored.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.commit_grouping import CommitErrors
from kbroker.coordinators.groups.offsets import CommitRequest, NewOffset
from kbroker.errors import describe
from kbroker.joining import mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kbroker.repeated_commit import RepeatedCommits

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext
    from kbroker.storage.pending import Pending

_FIRST_WITH_TOPIC_IDS = 10
_NONE = ErrorCode.NONE

_Codes = dict[tuple[str, int], ErrorCode]  # by topic and partition


def handle(
    broker: Broker, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    committed = broker.groups.offsets.commit(_commit(broker, request, context.api_version), context.now_ms)
    return mapped(committed, partial(_answer, request, context.api_version))


def _commit(broker: Broker, request: OffsetCommitRequest, version: int) -> CommitRequest:
    by_id = version >= _FIRST_WITH_TOPIC_IDS
    if by_id:
        for topic in request.topics:
            found = broker.topics.get_by_id(topic.topic_id)
            topic.name = found.name if found else ""
    return CommitRequest(
        group_id=request.group_id,
        offsets=[
            NewOffset(
                topic.name,
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                topic.topic_id,
            )
            for topic in request.topics
            if topic.name or not by_id
            for partition in topic.partitions
        ],
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
    if version >= _FIRST_WITH_TOPIC_IDS:
        for topic in request.topics:
            if not topic.name:
                codes |= {("", p.partition_index): ErrorCode.UNKNOWN_TOPIC_ID for p in topic.partitions}
    return _response(request, codes, _NONE)


def _response(request: OffsetCommitRequest, codes: _Codes, otherwise: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(
                        p.partition_index, codes.get((topic.name, p.partition_index), otherwise)
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


lanes = partial(RepeatedCommits, to_commit=_commit, to_response=_answer)
