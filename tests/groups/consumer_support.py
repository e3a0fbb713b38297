"""A world of consumer groups for tests.

Topics, a registry, the store in memory, and time that the test moves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import count
from typing import Any

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.groups import ConsumerGroups
from kbroker.coordinators.groups.consumer.member import owned_partitions
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import RebalanceInProgress
from kbroker.coordinators.groups.group import Group
from kbroker.coordinators.groups.store import GroupStore
from kbroker.pending import Pending

Names = dict[str, set[int]]


class FakeTopics:
    def __init__(self, **partitions: int) -> None:
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._made = count()
        for name, number in partitions.items():
            self.create(name, number)

    def create(self, name: str, partitions: int) -> None:
        topic_id = hashlib.blake2b(f"{name}/{next(self._made)}".encode(), digest_size=16).digest()
        self._topics[name] = (topic_id, partitions)

    def grow(self, name: str, partitions: int) -> None:
        self._topics[name] = (self._topics[name][0], partitions)

    def delete(self, name: str) -> None:
        del self._topics[name]

    def names(self) -> Iterable[str]:
        return self._topics.keys()

    def partition_count(self, name: str) -> int | None:
        return self._topics[name][1] if name in self._topics else None

    def topic_id(self, name: str) -> bytes | None:
        return self._topics[name][0] if name in self._topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, (known, _) in self._topics.items() if known == topic_id), None)


class World:
    """The registry, and the clock. `groups` are routed to ConsumerGroups as the coordinator does it."""

    def __init__(
        self,
        topics: FakeTopics,
        settings: ConsumerGroupSettings | None = None,
        store: GroupStore | None = None,
        now_ms: int = 1_000_000,
    ) -> None:
        ids = count(1)
        self.topics = topics
        self.settings = settings or ConsumerGroupSettings(assignment_interval_ms=0)
        self.store = store or MemoryGroupStore()
        self.env = GroupEnvironment(self.store, topics, lambda: f"generated-{next(ids)}")
        self.groups: dict[str, Group] = {}
        self.consumer_groups = ConsumerGroups(self.env, self, lambda group_id: self.settings)
        self.now_ms = now_ms
        for stored in self.store.load().groups:
            self.groups[stored.group_id] = self.consumer_groups.restore(stored, now_ms)

    def replace(self, group: Group) -> None:
        if group.group_id in self.groups:
            self.groups[group.group_id].close(RebalanceInProgress())
        self.groups[group.group_id] = group

    def pass_time(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.env.timers.fire(self.now_ms)

    def restarted(self) -> World:
        return World(self.topics, self.settings, self.store, self.now_ms)

    def group(self, group_id: str = "g") -> ConsumerGroup:
        return self.consumer_groups.group(group_id)

    def create_topic(self, name: str, partitions: int) -> None:
        self.topics.create(name, partitions)
        self.consumer_groups.topic_changed(name)

    def grow_topic(self, name: str, partitions: int) -> None:
        self.topics.grow(name, partitions)
        self.consumer_groups.topic_changed(name)

    def delete_topic(self, name: str) -> None:
        self.topics.delete(name)
        self.consumer_groups.topic_deleted(name)

    def heartbeat(
        self, member_id: str, member_epoch: int, owned: Names | None = None, **fields: Any
    ) -> HeartbeatResult:
        fields.setdefault("group_id", "g")
        result = self.consumer_groups.heartbeat(
            HeartbeatRequest(
                member_id=member_id,
                member_epoch=member_epoch,
                owned=None if owned is None else self.by_id(owned),
                **fields,
            ),
            self.now_ms,
        )
        assert not isinstance(result, Pending)
        return result

    def join(self, member_id: str, *topics: str, **fields: Any) -> HeartbeatResult:
        fields.setdefault("rebalance_timeout_ms", 60_000)
        if "subscribed_topic_regex" not in fields:
            fields.setdefault("subscribed_topic_names", list(topics))
        return self.heartbeat(member_id, 0, {}, **fields)

    def leave(self, member_id: str, member_epoch: int = -1, **fields: Any) -> HeartbeatResult:
        return self.heartbeat(member_id, member_epoch, **fields)

    def by_id(self, names: Names) -> dict[bytes, frozenset[int]]:
        """Topics that are gone are named by their id in hexadecimal, as `by_name` does it."""
        return owned_partitions(
            (self.topics.topic_id(name) or bytes.fromhex(name), held) for name, held in names.items()
        )

    def by_name(self, assignment: Any) -> Names | None:
        if assignment is None:
            return None
        return {
            self.topics.topic_name(topic_id) or topic_id.hex(): set(held)
            for topic_id, held in assignment.items()
        }

    def assigned(self, result: HeartbeatResult) -> Names | None:
        return self.by_name(result.assignment)
