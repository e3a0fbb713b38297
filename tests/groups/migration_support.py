"""A coordinator with time that the test moves, and clients of both protocols for it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any

from consumer_support import FakeTopics, Names

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.classic.protocol import (
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import owned_partitions
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.coordinator import GroupCoordinator
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import MemberIdRequired
from kbroker.pending import Pending
from kbroker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    write,
)

IDS = count(1)


class Broker:
    """A coordinator with time that the test moves."""

    def __init__(
        self, store: MemoryGroupStore | None = None, now_ms: int = 1_000_000, **settings: Any
    ) -> None:
        self.topics = FakeTopics(t=4, u=2)
        self.store = store or MemoryGroupStore()
        self.settings = ConsumerGroupSettings(assignment_interval_ms=0, **settings)
        self.now_ms = now_ms
        environment = GroupEnvironment(self.store, self.topics, lambda: f"id{next(IDS)}")
        self.coordinator = GroupCoordinator(environment, lambda group_id: self.settings)
        self.coordinator.load(now_ms)

    def pass_time(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.coordinator.tick(self.now_ms)

    def restarted(self) -> Broker:
        return Broker(self.store, self.now_ms)

    @property
    def group(self) -> ClassicGroup | ConsumerGroup:
        group = self.coordinator.groups["g"]
        assert isinstance(group, ClassicGroup | ConsumerGroup)
        return group

    def consumer_heartbeat(
        self,
        member_id: str,
        epoch: int,
        owned: Names | None = None,
        topics: Collection[str] | None = None,
        **fields: Any,
    ) -> HeartbeatResult:
        if epoch == 0:
            fields = {"rebalance_timeout_ms": 60_000, **fields}
            owned, topics = {}, topics or ["t"]
        if owned is not None:
            by_id = owned_partitions(
                (self.topics.topic_id(name) or b"", held) for name, held in owned.items()
            )
            fields["owned"] = by_id
        request = HeartbeatRequest("g", member_id, epoch, subscribed_topic_names=topics, **fields)
        result = self.coordinator.consumer_groups.heartbeat(request, self.now_ms)
        assert isinstance(result, HeartbeatResult)
        return result

    def assigned(self, result: HeartbeatResult) -> Names | None:
        if result.assignment is None:
            return None
        return {
            self.topics.topic_name(topic_id) or "": set(held) for topic_id, held in result.assignment.items()
        }


class Classic:
    """A consumer of the classic protocol. `owned` is what it says it owns when it joins."""

    def __init__(
        self, broker: Broker, topics: Collection[str] = ("t",), instance_id: str | None = None, **fields: Any
    ) -> None:
        self.broker = broker
        self.topics = topics
        self.instance_id = instance_id
        self.fields = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000, **fields}
        self.names = ("range", "cooperative-sticky")
        self.member_id = ""
        self.generation_id = -1
        self.owned: Names = {}
        self.waiting: Pending[JoinResult] | None = None
        self.syncing: Pending[SyncResult] | None = None

    def join(self) -> Classic:
        """Send JoinGroup, with the member id the broker asks for. The answer may have to wait."""
        subscription = ConsumerProtocolSubscription(
            topics=list(self.topics),
            owned_partitions=[TopicPartition(topic, sorted(held)) for topic, held in self.owned.items()],
        )
        metadata = write(subscription, 1)
        while True:
            self.waiting = self.broker.coordinator.join_group(
                JoinRequest(
                    "g",
                    self.member_id,
                    self.instance_id,
                    "client",
                    "/host",
                    protocol_type="consumer",
                    protocols=tuple((name, metadata) for name in self.names),
                    **self.fields,
                ),
                self.broker.now_ms,
            )
            try:
                if self.waiting.done:
                    self.joined()
                return self
            except MemberIdRequired as required:
                self.member_id = required.member_id or ""

    def joined(self) -> JoinResult:
        assert self.waiting is not None
        result = self.waiting.result()
        self.member_id, self.generation_id = result.member_id, result.generation_id
        return result

    def sync(self, **assignments: Names) -> Names:
        """What it is assigned. `assignments` is what it brings as the leader, by member id."""
        self.start_sync(**assignments)
        return self.synced()

    def start_sync(self, **assignments: Names) -> None:
        request = SyncRequest(
            "g",
            self.member_id,
            self.instance_id,
            self.generation_id,
            "consumer",
            "range",
            {member_id: encoded(partitions) for member_id, partitions in assignments.items()},
        )
        self.syncing = self.broker.coordinator.sync_group(request, self.broker.now_ms)

    def synced(self) -> Names:
        assert self.syncing is not None
        decoded = read_assignment(self.syncing.result().assignment)
        self.owned = {topic.topic: set(topic.partitions) for topic in decoded.assigned_partitions}
        return self.owned

    def heartbeat(self) -> None:
        self.broker.coordinator.heartbeat(
            "g", self.member_id, self.instance_id, self.generation_id, self.broker.now_ms
        )

    def leave(self) -> None:
        leaving = [LeavingMember(self.member_id, self.instance_id)]
        for result in self.broker.coordinator.leave_group("g", leaving, self.broker.now_ms).result():
            if result.error is not None:
                raise result.error


def encoded(partitions: Names, user_data: bytes | None = None) -> bytes:
    topics = [TopicPartition(topic, sorted(held)) for topic, held in partitions.items()]
    return write(ConsumerProtocolAssignment(topics, user_data), 1)
