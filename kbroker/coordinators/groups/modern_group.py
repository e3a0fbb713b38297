"""What consumer groups and share groups have in common: members that subscribe to topics and are given
partitions of them (Kafka calls such groups modern).
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.epoch_group import EpochGroup
from kbroker.coordinators.groups.modern_member import ModernMember
from kbroker.coordinators.groups.subscriptions import Subscriptions

M = TypeVar("M", bound=ModernMember)


class ModernGroup(EpochGroup[M, TopicPartitions], Generic[M]):
    def __init__(self, group_id: str, env: GroupEnvironment) -> None:
        super().__init__(group_id, env, nothing={})
        self.subscriptions = Subscriptions(env.topics)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def assignable(self) -> int:
        return sum(self.subscriptions.partition_counts().values())

    def refresh_metadata(self) -> bool:
        """Take note of the subscribed topics as they are; whether they are others than before."""
        self.metadata_refresh_requested = False
        metadata_hash = self.subscriptions.metadata_hash()
        if metadata_hash == self.metadata_hash:
            return False
        self.metadata_hash = metadata_hash
        self._unsaved_group = True
        return True

    def note_subscription(self, now_ms: int, *, changed: bool) -> None:
        """The group epoch grows if a member subscribes to something else, or its topics are others now."""
        if changed or self.metadata_refresh_requested:
            topics_changed = self.refresh_metadata()
            if changed or topics_changed:
                self.bump_epoch(now_ms)

    def _count(self, old: M | None, new: M | None) -> None:
        self.subscriptions.update(old, new)
