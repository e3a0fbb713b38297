"""The target assignment of a group: its members and topics, put before an assignor."""

from __future__ import annotations

from kbroker.coordinators.groups.assignors.spec import Assignor, MemberSpec, TopicPartitions
from kbroker.coordinators.groups.modern_group import M, ModernGroup


def compute_target(group: ModernGroup[M], assign: Assignor) -> dict[str, TopicPartitions]:
    same: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in group.members.items():
        subscription = (member.subscribed_topic_names, member.subscribed_topic_regex)
        if subscription not in same:
            same[subscription] = group.subscriptions.topic_ids_of(member)
        specs[member_id] = MemberSpec(same[subscription], group.target.get(member_id, {}), member.instance_id)
    return assign(specs, group.subscriptions.partition_counts())
