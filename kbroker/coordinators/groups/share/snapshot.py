"""A share group as the store keeps it: one state for the group, one for each member, and back."""

from __future__ import annotations

from typing import Any

from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.modern_snapshot import from_partitions, restore_members, to_partitions
from kbroker.coordinators.groups.share.group import ShareGroup
from kbroker.coordinators.groups.share.member import ShareGroupMember
from kbroker.coordinators.groups.store import State, StoredGroup

_PLAIN_FIELDS = ("member_epoch", "previous_member_epoch", "rack_id", "client_id", "client_host")


def member_state(group: ShareGroup, member_id: str) -> dict[str, Any] | None:
    """None if the member is gone."""
    member = group.members.get(member_id)
    if member is None:
        return None
    return {
        **{name: getattr(member, name) for name in _PLAIN_FIELDS},
        "subscribed_topic_names": sorted(member.subscribed_topic_names),
        "assigned": from_partitions(member.assigned),
        "target": from_partitions(group.target.get(member_id, {})),
    }


def restore(stored: StoredGroup, env: GroupEnvironment) -> ShareGroup:
    group = ShareGroup(stored.group_id, env)
    restore_members(group, stored, _member)
    return group


def _member(member_id: str, state: State) -> ShareGroupMember:
    return ShareGroupMember(
        member_id,
        **{name: state[name] for name in _PLAIN_FIELDS},
        subscribed_topic_names=frozenset(state["subscribed_topic_names"]),
        assigned=to_partitions(state["assigned"]),
    )
