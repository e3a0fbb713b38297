"""What consumer groups and share groups have in common as the store keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.modern_group import M, ModernGroup
from kbroker.coordinators.groups.saving import when_group_saved
from kbroker.coordinators.groups.store import GroupStore, State, StoredGroup
from kbroker.pending import Pending

T = TypeVar("T")
G = TypeVar("G", bound=ModernGroup[Any])


def when_members_saved(
    store: GroupStore, group: G, member_state: Callable[[G, str], State | None], result: T
) -> T | Pending[T]:
    """Store what has changed of the group. The result, when that is done."""
    return when_group_saved(store, group, group_state, member_state, result)


def group_state(group: ModernGroup[M]) -> dict[str, Any]:
    return {
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignment_timestamp_ms": group.assignment_timestamp_ms,
        "metadata_hash": group.metadata_hash,
    }


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


def from_partitions(held: TopicPartitions) -> list[Any]:
    return [[topic_id, sorted(partitions)] for topic_id, partitions in held.items()]


def to_partitions(held: list[Any]) -> TopicPartitions:
    return {topic_id: frozenset(partitions) for topic_id, partitions in held}
