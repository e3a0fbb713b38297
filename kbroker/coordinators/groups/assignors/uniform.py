"""The uniform assignor: as many partitions for each member as for any other, and as few moved as that allows.

When all members subscribe to the same topics, loads differ by at most one and the number of moved partitions
is the least possible. With different subscriptions a partition never moves unless that brings two subscribers
of its topic closer.
"""

from __future__ import annotations

from collections.abc import Mapping

from kbroker.coordinators.groups.assignors.spec import MemberSpec, TopicPartitions
from kbroker.coordinators.groups.assignors.uniform_heterogeneous import assign_heterogeneous


def assign_uniform(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicPartitions]:
    if not members:
        return {}
    subscriptions = {spec.subscribed for spec in members.values()}
    if len(subscriptions) == 1:
        return _assign_homogeneous(
            members, {topic_id: partition_counts[topic_id] for topic_id in subscriptions.pop()}
        )
    return assign_heterogeneous(members, partition_counts)


def _assign_homogeneous(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicPartitions]:
    quota, extra = divmod(sum(partition_counts.values()), len(members))
    free = {topic_id: set(range(count)) for topic_id, count in partition_counts.items()}
    assignment: dict[str, TopicPartitions] = {}
    loads: dict[str, int] = {}
    for member_id, spec in members.items():
        kept = spec.assigned
        if not _all_free(kept, free):
            kept = {
                topic_id: still
                for topic_id, partitions in kept.items()
                if (still := partitions & free.get(topic_id, _NONE))
            }
        for topic_id, partitions in kept.items():
            free[topic_id] -= partitions
        assignment[member_id] = kept
        loads[member_id] = sum(map(len, kept.values()))

    # The larger share goes first to those who hold as much already: moving it would be for nothing.
    room: dict[str, int] = {}
    for member_id in sorted(loads, key=lambda member_id: loads[member_id] <= quota):
        share = quota + (extra > 0)
        extra -= extra > 0
        if loads[member_id] > share:
            assignment[member_id] = _keep(assignment[member_id], share, free)
        elif loads[member_id] < share:
            room[member_id] = share - loads[member_id]

    unassigned = [(topic_id, partition) for topic_id, left in free.items() for partition in sorted(left)]
    start = 0
    for member_id, count in room.items():
        added: dict[bytes, set[int]] = {}
        for topic_id, partition in unassigned[start : start + count]:
            added.setdefault(topic_id, set()).add(partition)
        start += count
        grown = dict(assignment[member_id])
        for topic_id, partitions_added in added.items():
            grown[topic_id] = grown.get(topic_id, _NONE) | partitions_added
        assignment[member_id] = grown
    return assignment


def _all_free(partitions: TopicPartitions, free: Mapping[bytes, set[int]]) -> bool:
    return all(topic_id in free and wanted <= free[topic_id] for topic_id, wanted in partitions.items())


def _keep(held: TopicPartitions, share: int, free: dict[bytes, set[int]]) -> TopicPartitions:
    """The first `share` partitions of what is held; the rest is free."""
    kept: dict[bytes, frozenset[int]] = {}
    for topic_id, partitions in held.items():
        if len(partitions) <= share:
            kept[topic_id] = partitions
            share -= len(partitions)
            continue
        in_order = sorted(partitions)
        if share:
            kept[topic_id] = frozenset(in_order[:share])
        free[topic_id].update(in_order[share:])
        share = 0
    return kept


_NONE: frozenset[int] = frozenset()
