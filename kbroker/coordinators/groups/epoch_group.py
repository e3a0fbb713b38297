"""What groups have in common whose members follow a target by epochs, whatever it is that they are given.

Three epochs: `group_epoch` grows when members change, or what they work on; `assignment_epoch` is the group
epoch that the target was computed for; every member has its own, which catches up with it.

Invariants:
- `target` has an entry for members only.
- What changed since the last `take_unsaved` is known, so that a heartbeat stores no more than it changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import GroupError, NonEmptyGroup, UnknownMemberId
from kbroker.coordinators.groups.heartbeat_pacing import (
    assignment_interval_ms,
    heartbeat_interval_ms,
)
from kbroker.coordinators.groups.member_epochs import EpochMember
from kbroker.coordinators.groups.member_timers import MemberTimers

M = TypeVar("M", bound=EpochMember)
T = TypeVar("T")
"""What a member is given."""


class EpochGroup(Generic[M, T]):
    type: str

    def __init__(self, group_id: str, env: GroupEnvironment, nothing: T) -> None:
        """`nothing`: the target of a member that is given none."""
        self.group_id = group_id
        self.timers = MemberTimers(env.timers, group_id)
        self.group_epoch = 1  # a member is never in epoch 0, which means joining
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.metadata_hash = 0
        self.metadata_refresh_requested = True
        self.members: dict[str, M] = {}
        self.target: dict[str, T] = {}
        self.changed_ms = 0
        """When anything last moved the group: an epoch, the target, a member's assignment."""
        self._nothing = nothing
        self._unsaved: set[str] = set()
        self._unsaved_group = True
        self._closed = False
        self._rebalances = env.rebalances

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

    def member(self, member_id: str) -> M:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"group {self.group_id} has no member {member_id}")
        return member

    def assignable(self) -> int:
        """How much there is to assign."""
        raise NotImplementedError

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
        self._rebalances[self.type] += 1
        self.changed_ms = now_ms
        self._unsaved_group = True

    def set_target(self, target: Mapping[str, T], now_ms: int) -> None:
        """The target for the present group epoch."""
        for member_id in self.members:
            given = target.get(member_id, self._nothing)
            if self.target.get(member_id) != given:
                self.target[member_id] = given
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
        interval_ms = assignment_interval_ms(
            configured_interval_ms, members=len(self.members), partitions=self.assignable()
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
