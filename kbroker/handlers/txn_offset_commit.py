"""TxnOffsetCommit 0–5: offsets of a group that count when a transaction commits (KIP-98).

2 brings the leader epoch (KIP-320), 3 member and generation (KIP-447). Up to 4 the group must have been added
to the transaction by AddOffsetsToTxn; 5 adds it (KIP-890). A group that was not added is INVALID_TXN_STATE,
from 4 on TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.errors import InvalidGroupId
from kbroker.coordinators.groups.offsets.commit_grouping import CommitErrors
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.coordinators.groups.store import TopicPartition as GroupPartition
from kbroker.coordinators.transactions.errors import TransactionError
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TopicPartition
from kbroker.errors import describe
from kbroker.pending import Pending, Steps, run, wait
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation
from kbroker.topics.names import OFFSETS_TOPIC
from kbroker.transactions.errors import refusal_of_write
from kbroker.transactions.offsets_partition import partition_of_group

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.requests.context import RequestContext

_FIRST_WITH_TRANSACTION_ABORTABLE = 4
_FIRST_THAT_ADDS = 5

_Refused = dict[tuple[str, int], ErrorCode]
"""Partitions whose offsets are not committed."""


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]:
    resources = broker.resources(context)
    transactions = resources.transactions(request.transactional_id, AclOperation.WRITE)
    groups = resources.groups(request.group_id, AclOperation.READ)
    refused: _Refused = {}
    committable = 0
    for topic in request.topics:
        readable = resources.may_topic(AclOperation.READ, topic.name)
        for partition in topic.partitions:
            key = topic.name, partition.partition_index
            if not readable:
                refused[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not resources.has_partition(*key):
                refused[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                committable += 1
    if not committable:
        return _response(request, refused.__getitem__)
    if not request.group_id:
        raise InvalidGroupId("a transactional commit needs a group")
    answer = run(_commit(broker, transactions, groups, request, context, refused))
    return answer.result() if answer.done else answer


def refuse(
    request: TxnOffsetCommitRequest, context: RequestContext, error: BaseException
) -> TxnOffsetCommitResponse:
    code, _ = describe(error)
    return _response(request, lambda _: code)


def _commit(
    broker: Broker,
    transactions: TransactionCoordinator,
    groups: GroupCoordinator,
    request: TxnOffsetCommitRequest,
    context: RequestContext,
    refused: _Refused,
) -> Steps[TxnOffsetCommitResponse]:
    try:
        yield from _admit(broker, transactions, request, context)
        committing = groups.offsets.commit_in_transaction(
            request.producer_id, _commit_request(request, context, refused), context.now_ms
        )
    except Exception as error:
        if isinstance(error, TransactionError):
            error = refusal_of_write(error, context.api_version >= _FIRST_WITH_TRANSACTION_ABORTABLE)
        code, _ = describe(error)
        return _response(request, lambda key: refused.get(key, code))
    return _response(request, _codes((yield from wait(committing)), refused))


def _admit(
    broker: Broker,
    transactions: TransactionCoordinator,
    request: TxnOffsetCommitRequest,
    context: RequestContext,
) -> Steps[None]:
    """Add the group to the transaction, or check that it is in it."""
    partition = TopicPartition(OFFSETS_TOPIC, partition_of_group(broker, request.group_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if context.api_version >= _FIRST_THAT_ADDS:
        added = transactions.add_partitions(
            request.transactional_id, producer, [partition], 2, context.now_ms
        )
        return (yield from wait(added))
    verified = transactions.verify_partitions(request.transactional_id, producer, [partition])
    if (refusal := verified[partition]) is not None:
        raise refusal


def _commit_request(
    request: TxnOffsetCommitRequest, context: RequestContext, refused: _Refused
) -> CommitRequest:
    return CommitRequest(
        group_id=request.group_id,
        offsets=[
            NewOffset(
                topic.name,
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
            )
            for topic in request.topics
            for partition in topic.partitions
            if (topic.name, partition.partition_index) not in refused
        ],
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_or_epoch=request.generation_id,
        api_version=context.api_version,
    )


def _codes(errors: CommitErrors, refused: _Refused) -> Callable[[tuple[str, int]], int]:
    def code(key: tuple[str, int]) -> int:
        error = errors.get(GroupPartition(*key))
        return refused.get(key, ErrorCode.NONE) if error is None else describe(error)[0]

    return code


def _response(
    request: TxnOffsetCommitRequest, code: Callable[[tuple[str, int]], int]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=lazily(
            request.topics,
            lambda topic: TxnOffsetCommitResponseTopic(
                topic.name,
                lazily(
                    topic.partitions,
                    lambda partition: TxnOffsetCommitResponsePartition(
                        partition.partition_index, code((topic.name, partition.partition_index))
                    ),
                ),
            ),
        )
    )
