"""What consumer groups and share groups have in common: members that follow a target by epochs (Kafka calls
such groups modern).

Three epochs: `group_epoch` grows when members, subscriptions or subscribed topics change; `assignment_epoch`
is the group epoch that the target was computed for; every member has its own, which catches up with it.

Invariants:
- `target` has an entry for members only.
- What changed since the last `take_unsaved` is known, so that a heartbeat stores no more than it changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.consumer.heartbeat_pacing import (
    assignment_interval_ms,
    heartbeat_interval_ms,
)
from kbroker.coordinators.groups.consumer.subscriptions import Subscriptions
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import GroupError, NonEmptyGroup, UnknownMemberId
from kbroker.coordinators.groups.member_timers import MemberTimers
from kbroker.coordinators.groups.modern_member import ModernMember

M = TypeVar("M", bound=ModernMember)


class ModernGroup(Generic[M]):
    type: str

    def __init__(self, group_id: str, env: GroupEnvironment) -> None:
        self.group_id = group_id
        self.timers = MemberTimers(env.timers, group_id)
        self.group_epoch = 1  # a member is never in epoch 0, which means joining
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.metadata_hash = 0
        self.metadata_refresh_requested = True
        self.members: dict[str, M] = {}
        self.target: dict[str, TopicPartitions] = {}
        self.subscriptions = Subscriptions(env.topics)
        self.changed_ms = 0
        """When anything last moved the group: an epoch, the target, a member's assignment."""
        self._unsaved: set[str] = set()
        self._unsaved_group = True
        self._closed = False

    # what it is

    @property
    def state(self) -> str:
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def member_ids(self) -> Collection[str]:
        return self.members.keys()

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def member(self, member_id: str) -> M:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"group {self.group_id} has no member {member_id}")
        return member

    # how it changes

    def put(self, member: M) -> None:
        """Add the member, or replace the one with its id."""
        old = self.members.get(member.member_id)
        if old is member:
            return
        self.members[member.member_id] = member
        self._count(old, member)
        self._unsaved.add(member.member_id)

    def remove(self, member_id: str) -> None:
        self._count(self.members.pop(member_id), None)
        self.target.pop(member_id, None)
        self._unsaved.add(member_id)

    def bump_epoch(self, now_ms: int) -> None:
        self.group_epoch += 1
        self.changed_ms = now_ms
        self._unsaved_group = True

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

    def set_target(self, target: Mapping[str, TopicPartitions], now_ms: int) -> None:
        """The target for the present group epoch."""
        for member_id in self.members:
            partitions = target.get(member_id, {})
            if self.target.get(member_id) != partitions:
                self.target[member_id] = partitions
                self._unsaved.add(member_id)
        self.assignment_timestamp_ms = self.changed_ms = now_ms
        self.set_assignment_epoch(self.group_epoch)

    def set_assignment_epoch(self, assignment_epoch: int) -> None:
        self.assignment_epoch = assignment_epoch
        self._unsaved_group = True

    def take_unsaved(self) -> Collection[str] | None:
        """The ids of the members whose state is new or gone; None if nothing has changed at all."""
        if not self._unsaved and not self._unsaved_group:
            return None
        unsaved, self._unsaved, self._unsaved_group = self._unsaved, set(), False
        return unsaved

    def mark_unsaved(self, member_ids: Collection[str]) -> None:
        self._unsaved.update(member_ids)
        self._unsaved_group = True

    # when

    def wants_target(self, configured_interval_ms: int | None, now_ms: int) -> bool:
        """Whether the target is older than the group epoch, and old enough to be computed anew."""
        if self.assignment_epoch >= self.group_epoch:
            return False
        if not self.assignment_timestamp_ms:
            return True
        partitions = sum(self.subscriptions.partition_counts().values())
        interval_ms = assignment_interval_ms(
            configured_interval_ms, members=len(self.members), partitions=partitions
        )
        return interval_ms == 0 or now_ms >= self.assignment_timestamp_ms + interval_ms

    def next_heartbeat_ms(self, configured_ms: int, now_ms: int, *, settled: bool) -> int:
        """How soon a member shall come again."""
        return heartbeat_interval_ms(
            configured_ms,
            members=len(self.members),
            stable=settled,
            unchanged_for_ms=now_ms - self.changed_ms,
        )

    # its end

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise NonEmptyGroup(f"the group {self.group_id} has members")

    def close(self, reason: GroupError) -> None:
        """Nobody waits for an answer here: the next heartbeat finds out."""
        self.timers.cancel_all(self.members)
        self._closed = True

    # internals

    def _count(self, old: M | None, new: M | None) -> None:
        """`new` is in the place of `old`."""
        self.subscriptions.update(old, new)
