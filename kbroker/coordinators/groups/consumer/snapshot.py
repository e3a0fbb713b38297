"""A consumer group as the store keeps it: one state for the group, one for each member, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    MemberState,
    PartitionEpochs,
)
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.modern_group import M, ModernGroup
from kbroker.coordinators.groups.store import State, StoredGroup

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


def group_state(group: ModernGroup[M]) -> dict[str, Any]:
    return {
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignment_timestamp_ms": group.assignment_timestamp_ms,
        "metadata_hash": group.metadata_hash,
    }


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


def restore(stored: StoredGroup, env: GroupEnvironment) -> ConsumerGroup:
    group = ConsumerGroup(stored.group_id, env)
    restore_members(group, stored, _member)
    return group


def restore_members(group: ModernGroup[M], stored: StoredGroup, member_of: Callable[[str, State], M]) -> None:
    """Give a new group its epochs, members and target."""
    group.group_epoch = stored.state["group_epoch"]
    group.assignment_timestamp_ms = stored.state["assignment_timestamp_ms"]
    group.metadata_hash = stored.state["metadata_hash"]
    for member_id, state in stored.members.items():
        group.put(member_of(member_id, state))
        group.target[member_id] = to_partitions(state["target"])
    group.set_assignment_epoch(stored.state["assignment_epoch"])
    group.take_unsaved()


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


def from_partitions(held: TopicPartitions) -> list[Any]:
    return [[topic_id, sorted(partitions)] for topic_id, partitions in held.items()]


def to_partitions(held: list[Any]) -> TopicPartitions:
    return {topic_id: frozenset(partitions) for topic_id, partitions in held}


def _from_epochs(held: PartitionEpochs) -> list[Any]:
    return [
        [topic_id, [[partition, epoch] for partition, epoch in epochs.items()]]
        for topic_id, epochs in held.items()
    ]


def _to_epochs(held: list[Any]) -> PartitionEpochs:
    return {topic_id: dict(epochs) for topic_id, epochs in held}
