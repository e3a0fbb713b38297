"""The range assignor: per topic, consecutive partitions to the subscribers in a fixed order.

Topics with equal partition counts and equal subscribers are co-partitioned: a member gets the same partition
numbers of each. Static members come first, by instance id, so that a new member id after a restart moves
nothing; the others follow by member id. Nothing else is sticky.
"""

from __future__ import annotations

from collections.abc import Mapping

from kbroker.coordinators.groups.assignors.spec import MemberSpec, TopicPartitions


def assign_range(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicPartitions]:
    subscribers = _subscribers(members)
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, topic_members in subscribers.items():
        quota, extra = divmod(partition_counts[topic_id], len(topic_members))
        start = 0
        for position, member_id in enumerate(topic_members):
            end = start + quota + (position < extra)
            if start == end:
                break
            assignment[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def _subscribers(members: Mapping[str, MemberSpec]) -> Mapping[bytes, list[str]]:
    """Of each topic, in order."""
    ordered = _in_order(members)
    subscriptions = {spec.subscribed for spec in members.values()}
    if len(subscriptions) == 1:  # the usual: nobody need be looked at topic by topic
        return dict.fromkeys(subscriptions.pop(), ordered)
    found: dict[bytes, list[str]] = {}
    for member_id in ordered:
        for topic_id in members[member_id].subscribed:
            found.setdefault(topic_id, []).append(member_id)
    return found


def _in_order(members: Mapping[str, MemberSpec]) -> list[str]:
    def key(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    return sorted(members, key=key)
