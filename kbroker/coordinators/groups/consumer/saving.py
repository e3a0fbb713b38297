"""Answers that wait until the consumer group, or other modern group, they speak of is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kbroker.coordinators.groups.consumer import snapshot as consumer_snapshot
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.modern_group import ModernGroup
from kbroker.coordinators.groups.saving import when_group_saved, when_stored
from kbroker.coordinators.groups.store import GroupStore, State
from kbroker.pending import Pending

__all__ = ("when_members_saved", "when_saved", "when_stored")

T = TypeVar("T")
G = TypeVar("G", bound=ModernGroup[Any])


def when_saved(store: GroupStore, group: ConsumerGroup, result: T) -> T | Pending[T]:
    return when_members_saved(store, group, consumer_snapshot.member_state, result)


def when_members_saved(
    store: GroupStore, group: G, member_state: Callable[[G, str], State | None], result: T
) -> T | Pending[T]:
    return when_group_saved(store, group, consumer_snapshot.group_state, member_state, result)
