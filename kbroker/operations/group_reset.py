"""Where a group without members goes on: set anew, as Kafka's tools do it.

Offsets stay within the log: one before its start becomes the start, one behind its end the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from kbroker.coordinators.groups.coordinator import SHARE
from kbroker.coordinators.groups.errors import NonEmptyGroup
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.operations import share_offsets
from kbroker.operations.auditing import audited
from kbroker.operations.group_offsets import (
    MOST_PARTITIONS,
    NewOffset,
    Refusals,
    commit_offsets,
    committed_offsets,
)
from kbroker.operations.offsets import EARLIEST, LATEST
from kbroker.operations.partitions import offset_at
from kbroker.pending import Pending, mapped, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.coordinators.groups.group import Group
    from kbroker.requests.resources import Resources


@dataclass(frozen=True, slots=True)
class ResetTo:
    """The start or the end of the log, an offset, the first record from a time (ms) on (the end where there
    is none), or so many records on, or back if negative, from where the group is.
    """

    kind: Literal["earliest", "latest", "offset", "time", "shift"]
    number: int = 0


class ResetOffset(NamedTuple):
    topic: str
    partition: int
    before: int | None
    """None: there was none."""
    after: int


def reset_offsets(
    resources: Resources,
    group_id: str,
    to: ResetTo,
    topics: Collection[str] | None = None,
    partitions: Collection[TopicPartition] | None = None,
    *,
    dry_run: bool = False,
    now_ms: int,
) -> Steps[list[ResetOffset]]:
    """Of these topics and partitions; without any, of all that the group has read.

    ``dry_run``: change nothing.

    Raises ApiError if a single one cannot be set; what is refused later, by the store, fails the whole.
    """
    groups = resources.groups(group_id, AclOperation.READ)
    group = groups.groups.get(group_id)
    _check_empty(group)
    before = yield from _before(resources, group_id, group)
    wanted = _wanted(resources, before, topics, partitions)
    changes: list[ResetOffset] = []
    for at in wanted:
        yield None
        offset = yield from _target(resources, at, to, before.get(at))
        if offset is not None:
            changes.append(ResetOffset(*at, before.get(at), offset))
    if not changes:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Group {group_id} has read nothing there: name the topics whose offsets are to be set.",
        )
    if not dry_run:
        _check_empty(groups.groups.get(group_id))  # somebody may have joined meanwhile
        done = audited(
            resources,
            AclResourceType.GROUP.name,
            group_id,
            lambda: _set(resources, group_id, group, changes, now_ms),
            {"reset": to.kind, "partitions": len(changes)},
        )
        refusals = (yield from wait(done)) if isinstance(done, Pending) else done
        for error in refusals.values():
            raise error
    return changes


def _check_empty(group: Group | None) -> None:
    if group is not None and not group.is_empty:
        raise NonEmptyGroup(
            f"Group {group.group_id} has members: they must leave before its offsets are reset."
        )


def _before(
    resources: Resources, group_id: str, group: Group | None
) -> Steps[dict[TopicPartition, int | None]]:
    before: dict[TopicPartition, int | None] = {}
    if group is not None and group.type == SHARE:
        states = resources.share_states(group_id, AclOperation.DESCRIBE)
        for topic_id, partition in states.initialized(group_id):
            topic = resources.find_topic(topic_id, AclOperation.DESCRIBE)
            if topic is not None:
                found = share_offsets.position(resources, states, group_id, topic, partition)
                if isinstance(found, Pending):
                    found = yield from wait(found)
                before[TopicPartition(topic.name, partition)] = (
                    found.start_offset if found.start_offset >= 0 else None
                )
        return before
    fetched = committed_offsets(resources, group_id)
    committed = (yield from wait(fetched)) if isinstance(fetched, Pending) else fetched
    for at, offset in committed.items():
        if isinstance(offset, CommittedOffset):
            before[at] = offset.offset
    return before


def _wanted(
    resources: Resources,
    before: Collection[TopicPartition],
    topics: Collection[str] | None,
    partitions: Collection[TopicPartition] | None,
) -> list[TopicPartition]:
    wanted = set(partitions or ())
    for name in topics or ():
        topic = resources.topic(name, AclOperation.READ)
        wanted.update(TopicPartition(name, partition) for partition in range(topic.partitions))
    if topics is None and partitions is None:
        wanted.update(before)
    if len(wanted) > MOST_PARTITIONS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"At most {MOST_PARTITIONS} partitions at a time: name fewer topics."
        )
    return sorted(wanted)


def _target(resources: Resources, at: TopicPartition, to: ResetTo, before: int | None) -> Steps[int | None]:
    """None: there is nothing to shift."""
    resources.check_topic(AclOperation.READ, at.topic)
    start = yield from _found(resources, at, EARLIEST)
    end = yield from _found(resources, at, LATEST)
    assert start is not None
    assert end is not None
    if to.kind == "earliest":
        return start
    if to.kind == "latest":
        return end
    if to.kind == "time":
        found = yield from _found(resources, at, to.number)
        return end if found is None else found
    if to.kind == "shift":
        if before is None:
            return None
        return max(start, min(before + to.number, end))
    return max(start, min(to.number, end))


def _found(resources: Resources, at: TopicPartition, timestamp: int) -> Steps[int | None]:
    found = offset_at(resources, at.topic, at.partition, timestamp)
    if isinstance(found, Pending):
        found = yield from wait(found)
    return None if found is None else found.offset


def _set(
    resources: Resources, group_id: str, group: Group | None, changes: Collection[ResetOffset], now_ms: int
) -> Refusals | Pending[Refusals]:
    if group is not None and group.type == SHARE:
        offsets = {
            (resources.topic(each.topic, AclOperation.READ).topic_id, each.partition): each.after
            for each in changes
        }
        altered = share_offsets.alter(resources, group_id, offsets, create=False, now_ms=now_ms)
        return mapped(altered, lambda _: {})
    new = [NewOffset(each.topic, each.partition, each.after) for each in changes]
    return commit_offsets(resources, group_id, new, now_ms=now_ms)
