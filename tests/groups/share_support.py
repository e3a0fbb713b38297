"""A world of share groups for tests: topics, a coordinator, stores in memory, time that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.catalog.memory_shares import MemoryShareStateStore
from kbroker.coordinators.groups.coordinator import GroupCoordinator
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.share.group import ShareGroup
from kbroker.coordinators.groups.share.groups import ShareGroups
from kbroker.coordinators.groups.share.requests import ShareHeartbeatRequest, ShareHeartbeatResult
from kbroker.coordinators.groups.share.settings import ShareGroupSettings
from kbroker.coordinators.shares.states import ShareStates
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending
from tests.groups.consumer_support import FakeTopics, Names


class Writes:
    """Writes to a store that are done at once, or when the test says so."""

    def __init__(self) -> None:
        self.held: list[Pending[None]] | None = None

    def __call__(self) -> Pending[None]:
        if self.held is None:
            return Pending.resolved(None)
        self.held.append(Pending())
        return self.held[-1]

    def hold(self) -> None:
        self.held = []

    def let_go(self, settle: Callable[[Pending[None]], None] = lambda write: write.resolve(None)) -> None:
        held, self.held = self.held or [], None
        for write in held:
            settle(write)


class ShareWorld:
    def __init__(
        self,
        topics: FakeTopics,
        settings: ShareGroupSettings | None = None,
        before: ShareWorld | None = None,
    ) -> None:
        """`before`: the same before a restart."""
        ids = count(1)
        self.topics = topics
        self.held: set[tuple[str | None, int, str]] = set()
        """Of which topic and partition which member holds records."""
        self.withdrawn: set[tuple[str | None, int, str]] = set()
        """And of which it may not acquire any."""
        self.settings = settings or ShareGroupSettings(assignment_interval_ms=0)
        self.now_ms = before.now_ms if before else 1_000_000
        self.group_writes, self.state_writes = Writes(), Writes()
        self.store = before.store if before else MemoryGroupStore(self.group_writes)
        self.state_store = before.state_store if before else MemoryShareStateStore(written=self.state_writes)
        self.states = ShareStates(self.state_store)
        self.env = GroupEnvironment(self.store, topics, lambda: f"generated-{next(ids)}")
        self.coordinator = GroupCoordinator(self.env, open_share_groups=self._open)
        self.coordinator.load(self.now_ms)

    def _open(self, coordinator: GroupCoordinator) -> ShareGroups:
        return ShareGroups(
            self.env,
            coordinator,
            lambda: self.states,
            lambda: self,
            lambda group_id: self.settings,
        )

    def withdraw(self, key: ShareKey, member_id: str) -> bool:
        right = (self.topics.topic_name(key.topic_id), key.partition, member_id)
        if right in self.held:
            return False
        self.withdrawn.add(right)
        return True

    def grant(self, key: ShareKey, member_id: str) -> None:
        self.withdrawn.discard((self.topics.topic_name(key.topic_id), key.partition, member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        self.withdrawn = {right for right in self.withdrawn if right[2] != member_id}

    def restarted(self) -> ShareWorld:
        return ShareWorld(self.topics, self.settings, self)

    def pass_time(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.coordinator.tick(self.now_ms)

    def group(self, group_id: str = "g") -> ShareGroup:
        return self.coordinator.share_groups.group(group_id)

    def create_topic(self, name: str, partitions: int) -> None:
        self.topics.create(name, partitions)
        self.coordinator.topic_changed(name)

    def grow_topic(self, name: str, partitions: int) -> None:
        self.topics.grow(name, partitions)
        self.coordinator.topic_changed(name)

    def delete_topic(self, name: str) -> None:
        topic_id = self.topics.topic_id(name)
        assert topic_id is not None
        self.topics.delete(name)
        self.states.delete_topic(topic_id)
        self.coordinator.topic_deleted(name)

    def begin(
        self, member_id: str, member_epoch: int, *topics: str, **fields: Any
    ) -> ShareHeartbeatResult | Pending[ShareHeartbeatResult]:
        fields.setdefault("group_id", "g")
        if topics:
            fields["subscribed_topic_names"] = list(topics)
        request = ShareHeartbeatRequest(member_id=member_id, member_epoch=member_epoch, **fields)
        return self.coordinator.share_groups.heartbeat(request, self.now_ms)

    def heartbeat(
        self, member_id: str, member_epoch: int, *topics: str, **fields: Any
    ) -> ShareHeartbeatResult:
        result = self.begin(member_id, member_epoch, *topics, **fields)
        assert not isinstance(result, Pending)
        return result

    def join(self, member_id: str, *topics: str, **fields: Any) -> ShareHeartbeatResult:
        return self.heartbeat(member_id, 0, *topics, **fields)

    def assigned(self, result: ShareHeartbeatResult) -> Names | None:
        if result.assignment is None:
            return None
        return {
            self.topics.topic_name(topic_id) or topic_id.hex(): set(held)
            for topic_id, held in result.assignment.items()
        }

    def initialized(self, group_id: str = "g") -> set[tuple[str | None, int]]:
        return {
            (self.topics.topic_name(topic), partition)
            for topic, partition in self.states.initialized(group_id)
        }
