"""How far a group is behind, partition by partition.

Of a partition that is assigned and of which nothing is committed every record counts. The end is what readers
may see: the high watermark. A share group has a start offset instead of a committed one; what is done behind
it is no lag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.groups.coordinator import SHARE
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.operations.group_offsets import committed_offsets
from kbroker.operations.groups import DescribedGroup, DescribedMember, describe_group
from kbroker.operations.share_offsets import position
from kbroker.pending import Pending, wait
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic


class PartitionLag(NamedTuple):
    topic: str
    partition: int
    committed_offset: int | None
    """None: nothing is committed. Of a share group: its start offset."""
    metadata: str
    log_start_offset: int
    log_end_offset: int
    lag: int
    member: DescribedMember | None
    """Who reads it; None: nobody, or of a share group anybody."""


class GroupLag(NamedTuple):
    group: DescribedGroup
    partitions: list[PartitionLag]
    """Sorted by topic and partition; of topics that the caller may describe."""

    @property
    def total(self) -> int:
        return sum(each.lag for each in self.partitions)

    @property
    def largest(self) -> PartitionLag | None:
        return max(self.partitions, key=lambda each: each.lag, default=None)


def group_lag(resources: Resources, group_id: str) -> Steps[GroupLag]:
    group = yield from describe_group(resources, group_id)
    if group.type == SHARE:
        return GroupLag(group, (yield from _share_lag(resources, group_id)))
    fetched = committed_offsets(resources, group_id)
    committed = (yield from wait(fetched)) if isinstance(fetched, Pending) else fetched
    readers = {at: member for member in group.members for at in member.assignment}
    partitions = []
    for at in sorted(committed.keys() | readers.keys()):
        yield None
        topic = resources.find_topic(at.topic, AclOperation.DESCRIBE)
        if topic is None or at.partition >= topic.partitions:
            continue
        start, end = yield from _bounds(resources, topic, at.partition)
        found = committed.get(at)
        offset = found.offset if isinstance(found, CommittedOffset) else None
        partitions.append(
            PartitionLag(
                at.topic,
                at.partition,
                offset,
                found.metadata if isinstance(found, CommittedOffset) else "",
                start,
                end,
                max(end - (start if offset is None else offset), 0),
                readers.get(at),
            )
        )
    return GroupLag(group, partitions)


def _share_lag(resources: Resources, group_id: str) -> Steps[list[PartitionLag]]:
    states = resources.share_states(group_id, AclOperation.DESCRIBE)
    partitions = []
    for topic_id, partition in sorted(states.initialized(group_id)):
        yield None
        topic = resources.find_topic(topic_id, AclOperation.DESCRIBE)
        if topic is None or partition >= topic.partitions:
            continue
        found = position(resources, states, group_id, topic, partition)
        if isinstance(found, Pending):
            found = yield from wait(found)
        start, end = yield from _bounds(resources, topic, partition)
        decided = found.start_offset if found.start_offset >= 0 else None
        partitions.append(
            PartitionLag(topic.name, partition, decided, "", start, end, max(found.lag, 0), None)
        )
    return sorted(partitions, key=lambda each: TopicPartition(each.topic, each.partition))


def _bounds(resources: Resources, topic: Topic, partition: int) -> Steps[tuple[int, int]]:
    log = resources.log_of(topic, partition)
    refreshed = log.refresh()
    if refreshed is not None:
        yield from wait(refreshed)
    return log.log_start_offset, log.high_watermark
