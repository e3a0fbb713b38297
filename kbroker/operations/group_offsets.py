"""How far groups have read: committed, asked for and deleted, as whom a caller may.

As in Kafka: READ on the group and on each topic to commit, DESCRIBE on both to ask, DELETE on the group and
READ on the topics to delete. A topic that is refused is an error of its partitions, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources

__all__ = [
    "CommittedOffset",
    "Fetched",
    "Member",
    "NewOffset",
    "Refusals",
    "TopicPartition",
    "commit_offsets",
    "committed_offsets",
    "delete_offsets",
]

T = TypeVar("T")

MOST_PARTITIONS = 10_000
"""Of one call: each takes some microseconds in which nobody else has a turn."""

Refusals = dict[TopicPartition, Exception]
"""Partitions for which it was not done, and why; those that are not in it are done."""

Fetched = dict[TopicPartition, CommittedOffset | Exception | None]
"""None: nothing is committed."""


class Member(NamedTuple):
    """Who commits, of a group with members."""

    member_id: str
    epoch: int
    """Of a classic group: the generation."""
    instance_id: str | None = None


NO_MEMBER = Member("", -1)
"""A commit from outside: only to a group without members."""


def commit_offsets(
    resources: Resources,
    group_id: str,
    offsets: Sequence[NewOffset],
    *,
    member: Member = NO_MEMBER,
    now_ms: int,
) -> Refusals | Pending[Refusals]:
    """Settles when they are stored."""
    groups = resources.groups(group_id, AclOperation.READ)
    _check_number(offsets)
    refusals: Refusals = {}
    allowed = _allowed(
        resources, offsets, AclOperation.READ, refusals, lambda new: (new.topic, new.partition)
    )
    if not allowed:
        return refusals
    request = commit_request(group_id, allowed, member)
    return mapped(groups.offsets.commit(request, now_ms), lambda errors: refusals | errors)


def commit_request(group_id: str, offsets: Sequence[NewOffset], member: Member) -> CommitRequest:
    return CommitRequest(
        group_id=group_id,
        offsets=offsets,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        generation_or_epoch=member.epoch,
    )


def committed_offsets(
    resources: Resources,
    group_id: str,
    partitions: Sequence[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> Fetched | Pending[Fetched]:
    """Of these partitions, or of all that have any. A group that does not exist has committed nothing.

    ``require_stable``: an offset on which a transaction has yet to decide is an error of its partition.
    """
    groups = resources.groups(group_id, AclOperation.DESCRIBE)
    refusals: Refusals = {}
    if partitions is not None:
        _check_number(partitions)
        partitions = _allowed(resources, partitions, AclOperation.DESCRIBE, refusals, lambda asked: asked)
    fetched = groups.offsets.fetch(group_id, partitions, require_stable=require_stable)
    if partitions is not None or not resources.restricted:
        return mapped(fetched, lambda found: {**refusals, **found})
    return mapped(
        fetched,
        lambda found: {
            partition: offset
            for partition, offset in found.items()
            if resources.may_topic(AclOperation.DESCRIBE, partition.topic)
        },
    )


def delete_offsets(
    resources: Resources, group_id: str, partitions: Sequence[TopicPartition]
) -> Refusals | Pending[Refusals]:
    """Forget them. Those of topics that the group reads stay."""
    groups = resources.groups(group_id, AclOperation.DELETE)
    _check_number(partitions)
    refusals: Refusals = {}
    allowed = _allowed(resources, partitions, AclOperation.READ, refusals, lambda asked: asked)
    deleted = groups.offsets.delete(group_id, allowed)
    return mapped(
        deleted,
        lambda results: (
            refusals | {partition: error for partition, error in results.items() if error is not None}
        ),
    )


def _allowed(
    resources: Resources,
    asked: Iterable[T],
    operation: AclOperation,
    refusals: Refusals,
    partition_of: Callable[[T], tuple[str, int]],
) -> list[T]:
    """Those of topics to which the caller may do this."""
    if not resources.restricted:
        return list(asked)
    answers: dict[str, ApiError | None] = {}
    allowed = []
    for each in asked:
        topic, partition = partition_of(each)
        if topic not in answers:
            try:
                resources.check_topic(operation, topic)
                answers[topic] = None
            except ApiError as error:
                answers[topic] = error
        refusal = answers[topic]
        if refusal is None:
            allowed.append(each)
        else:
            refusals[TopicPartition(topic, partition)] = refusal
    return allowed


def _check_number(partitions: Sequence[object]) -> None:
    if len(partitions) > MOST_PARTITIONS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"At most {MOST_PARTITIONS} partitions at a time: ask several times."
        )
