"""A consumer group as the store keeps it: one state for the group, one for each member, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    MemberState,
    PartitionEpochs,
)
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.modern_snapshot import (
    from_partitions,
    restore_members,
    when_members_saved,
)
from kbroker.coordinators.groups.store import GroupStore, State, StoredGroup
from kbroker.pending import Pending

T = TypeVar("T")

_PLAIN_FIELDS = (
    "member_epoch",
    "previous_member_epoch",
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "client_id",
    "client_host",
    "subscribed_topic_regex",
    "server_assignor",
)


def member_state(group: ConsumerGroup, member_id: str) -> dict[str, Any] | None:
    """None if the member is gone."""
    member = group.members.get(member_id)
    if member is None:
        return None
    state: dict[str, Any] = {name: getattr(member, name) for name in _PLAIN_FIELDS}
    state["state"] = member.state.value
    state["subscribed_topic_names"] = sorted(member.subscribed_topic_names)
    state["assigned"] = _from_epochs(member.assigned)
    state["pending_revocation"] = _from_epochs(member.pending_revocation)
    state["target"] = from_partitions(group.target.get(member_id, {}))
    if member.classic is not None:
        protocols = [[name, metadata] for name, metadata in member.classic.protocols]
        state["classic"] = {"session_timeout_ms": member.classic.session_timeout_ms, "protocols": protocols}
    return state


def when_saved(store: GroupStore, group: ConsumerGroup, result: T) -> T | Pending[T]:
    """Store what has changed of the group. The result, when that is done."""
    return when_members_saved(store, group, member_state, result)


def restore(stored: StoredGroup, env: GroupEnvironment) -> ConsumerGroup:
    group = ConsumerGroup(stored.group_id, env)
    restore_members(group, stored, _member)
    return group


def _member(member_id: str, state: State) -> ConsumerGroupMember:
    classic = state.get("classic")
    return ConsumerGroupMember(
        member_id,
        **{name: state[name] for name in _PLAIN_FIELDS},
        state=MemberState(state["state"]),
        subscribed_topic_names=frozenset(state["subscribed_topic_names"]),
        assigned=_to_epochs(state["assigned"]),
        pending_revocation=_to_epochs(state["pending_revocation"]),
        classic=None if classic is None else _classic(classic),
    )


def _classic(state: Mapping[str, Any]) -> ClassicMemberMetadata:
    protocols = tuple((name, metadata) for name, metadata in state["protocols"])
    return ClassicMemberMetadata(state["session_timeout_ms"], protocols)


def _from_epochs(held: PartitionEpochs) -> list[Any]:
    return [
        [topic_id, [[partition, epoch] for partition, epoch in epochs.items()]]
        for topic_id, epochs in held.items()
    ]


def _to_epochs(held: list[Any]) -> PartitionEpochs:
    return {topic_id: dict(epochs) for topic_id, epochs in held}
