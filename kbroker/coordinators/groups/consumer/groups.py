"""The consumer groups (KIP-848): what a heartbeat does to a group, and what happens when one does not come.

A heartbeat has four parts: the member is created or brought up to date; the group epoch grows if
subscriptions or subscribed topics have changed; the target is computed if it is older than the group epoch;
the member takes a step towards it.

Invariants:
- A request that is refused has changed nothing: every check comes before the first change.
- An answer is given when what it says is stored.
- A heartbeat is never held back to wait for others; how soon the next one comes is the answer's to say
  (heartbeat_pacing).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import TypeVar

from kbroker.coordinators.groups.assignors import ASSIGNORS
from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.consumer import snapshot as consumer_snapshot
from kbroker.coordinators.groups.consumer.classic_protocol_members import ClassicProtocolMembers
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.heartbeat_member import brought_up_to_date, find_or_make_member
from kbroker.coordinators.groups.consumer.member import (
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroupMember,
    MemberState,
    Owned,
)
from kbroker.coordinators.groups.consumer.migration import downgraded, may_downgrade, upgraded
from kbroker.coordinators.groups.consumer.reconciliation import Reconciliation, reconcile
from kbroker.coordinators.groups.consumer.requests import (
    HeartbeatRequest,
    HeartbeatResult,
    validate_heartbeat,
)
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings, SettingsFor
from kbroker.coordinators.groups.consumer.snapshot import when_saved
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    GroupMaxSizeReached,
)
from kbroker.coordinators.groups.group import GroupRegistry
from kbroker.coordinators.groups.member_timers import MemberTimer
from kbroker.coordinators.groups.saving import when_stored
from kbroker.coordinators.groups.store import StoredGroup
from kbroker.coordinators.groups.target_assignment import compute_target
from kbroker.coordinators.groups.topic_regex import validate_regex
from kbroker.pending import Pending

T = TypeVar("T")


class ConsumerGroups:
    def __init__(
        self,
        env: GroupEnvironment,
        registry: GroupRegistry,
        settings_for: SettingsFor = lambda group_id: ConsumerGroupSettings(),
    ) -> None:
        self._env = env
        self._registry = registry
        self.settings_for = settings_for
        self.classic = ClassicProtocolMembers(self, env)

    # requests

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResult | Pending[HeartbeatResult]:
        self._env.timers.advance(now_ms)
        settings = self.settings_for(request.group_id)
        validate_heartbeat(request, settings.assignors)
        if request.member_epoch < 0:
            return self._leave(request, now_ms)
        joins = request.member_epoch == 0
        group = self._find_or_make(request.group_id, settings) if joins else self.group(request.group_id)
        member_id = request.member_id or self._env.new_id()
        self.check_room(group, member_id, settings)
        member, replaced = find_or_make_member(group, member_id, request)
        updated = brought_up_to_date(member, request)
        if updated.subscribed_topic_regex and updated.subscribed_topic_regex != member.subscribed_topic_regex:
            validate_regex(updated.subscribed_topic_regex)
        if request.may_see is not None and updated.subscribed_topic_regex:
            group.restrict_regex(updated.subscribed_topic_regex, request.may_see)

        # Nothing is refused from here on.
        if replaced is not None:
            group.timers.cancel_all((replaced.member_id,))
            group.replace_static(replaced, member)
        updated = self.update_member(group, member, updated, request.owned, settings, now_ms)
        if member.uses_classic_protocol:
            group.timers.cancel_all((member_id,))
        self.schedule(MemberTimer.SESSION, group, member_id, now_ms + settings.session_timeout_ms)
        interval_ms = group.next_heartbeat_ms(
            settings.heartbeat_interval_ms, now_ms, settled=group.state == "Stable"
        )
        result = HeartbeatResult(member_id, updated.member_epoch, interval_ms)
        if joins or request.is_full or updated.assigned != member.assigned:
            result.assignment = updated.assigned
        if self._registry.groups.get(group.group_id) is not group:
            self._register(group, now_ms)
        return when_saved(self._env.store, group, result)

    def _leave(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResult | Pending[HeartbeatResult]:
        group = self.group(request.group_id)
        result = HeartbeatResult(request.member_id, request.member_epoch)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = group.known_static_member(request.instance_id, request.member_id)
            if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
                group.put(member.left_for_a_while())
                return when_saved(self._env.store, group, result)
        return self.fence(group, (member,), now_ms, result)

    def group(self, group_id: str) -> ConsumerGroup:
        group = self._registry.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"group {group_id} does not use the consumer protocol")
        return group

    def assignor_of(self, group: ConsumerGroup) -> str:
        return group.preferred_assignor() or self.settings_for(group.group_id).assignors[0]

    # steps that requests of both protocols take

    def update_member(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        owned: Owned | None,
        settings: ConsumerGroupSettings,
        now_ms: int,
    ) -> ConsumerGroupMember:
        """The member, as far on its way to the target as it can go.

        `member` is what it was before the request.
        """
        subscription_changed = (
            updated.subscribed_topic_names != member.subscribed_topic_names
            or updated.subscribed_topic_regex != member.subscribed_topic_regex
        )
        group.put(updated)
        group.note_subscription(now_ms, changed=subscription_changed)
        if group.wants_target(settings.assignment_interval_ms, now_ms):
            group.set_target(compute_target(group, ASSIGNORS[self.assignor_of(group)]), now_ms)
        if subscription_changed or not updated.is_reconciled_to(group.assignment_epoch):
            updated = self._reconcile(group, updated, owned, subscription_changed, now_ms)
        return updated

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        owned: Owned | None,
        subscription_changed: bool,
        now_ms: int,
    ) -> ConsumerGroupMember:
        reconciled = reconcile(
            member,
            Reconciliation(
                group.assignment_epoch,
                group.target.get(member.member_id, {}),
                group.subscriptions.topic_ids_of(member),
                partial(group.is_held_by_another, member.member_id),
                subscription_changed,
                owned,
            ),
        )
        if reconciled == member:
            return member
        group.put(reconciled)
        group.changed_ms = now_ms
        if not reconciled.uses_classic_protocol:
            if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
                self._schedule_rebalance(group, reconciled, now_ms)
            else:
                group.timers.cancel(MemberTimer.REBALANCE, reconciled.member_id)
        return reconciled

    def check_room(self, group: ConsumerGroup, member_id: str, settings: ConsumerGroupSettings) -> None:
        if len(group.members) >= settings.max_size and member_id not in group.members:
            raise GroupMaxSizeReached(f"the group has {settings.max_size} members already")

    def fence(
        self, group: ConsumerGroup, members: Collection[ConsumerGroupMember], now_ms: int, result: T
    ) -> T | Pending[T]:
        """Remove members that leave, or that have not done in time what they had to.

        The result, when that is stored.
        """
        if not members:
            return result
        settings = self.settings_for(group.group_id)
        if may_downgrade(group, members, settings, self._env.settings.group_max_size):
            return self.downgrade(group, members, now_ms, rebalance=True, result=result)
        for member in members:
            group.remove(member.member_id)
        group.timers.cancel_all(member.member_id for member in members)
        group.refresh_metadata()
        group.bump_epoch(now_ms)
        return when_saved(self._env.store, group, result)

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Collection[ConsumerGroupMember],
        now_ms: int,
        *,
        rebalance: bool,
        result: T,
    ) -> T | Pending[T]:
        """Go on as a classic group, without those who leave. The result, when that is stored."""
        classic = downgraded(group, leaving, self._env, now_ms)
        self._registry.replace(classic)
        classic.start(now_ms)
        saved = classic.save()
        if rebalance:
            classic.rebalance(now_ms)
        return when_stored(group.group_id, saved, result)

    def schedule(self, timer: MemberTimer, group: ConsumerGroup, member_id: str, deadline_ms: int) -> None:
        """The member is fenced at that time."""
        group.timers.schedule(timer, member_id, deadline_ms, partial(self._expire, group, member_id))

    def schedule_if_absent(
        self, timer: MemberTimer, group: ConsumerGroup, member_id: str, deadline_ms: int
    ) -> None:
        group.timers.schedule_if_absent(
            timer, member_id, deadline_ms, partial(self._expire, group, member_id)
        )

    # what happens without a request

    def restore(self, stored: StoredGroup, now_ms: int) -> ConsumerGroup:
        """The group as it was stored; its members have a session timeout to show up."""
        group = consumer_snapshot.restore(stored, self._env)
        group.changed_ms = now_ms
        settings = self.settings_for(group.group_id)
        for member in group.members.values():
            self._expect_heartbeat(group, member, settings, now_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
                self._schedule_rebalance(group, member, now_ms)
        return group

    def topic_changed(self, topic: str) -> None:
        """The topic has been created or has grown."""
        for group in self._consumer_groups():
            group.subscriptions.topic_created(topic)
            if topic in group.subscriptions:
                group.metadata_refresh_requested = True

    def topic_deleted(self, topic: str) -> None:
        for group in self._consumer_groups():
            if topic in group.subscriptions:
                group.subscriptions.topic_deleted(topic)
                group.metadata_refresh_requested = True

    # internals

    def _consumer_groups(self) -> list[ConsumerGroup]:
        return [group for group in self._registry.groups.values() if isinstance(group, ConsumerGroup)]

    def _find_or_make(self, group_id: str, settings: ConsumerGroupSettings) -> ConsumerGroup:
        group = self._registry.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if isinstance(group, ClassicGroup) and not group.is_empty:
            return upgraded(group, self._env, settings)
        if group is not None and not isinstance(group, ClassicGroup):
            return self.group(group_id)  # of another type, which it keeps
        return ConsumerGroup(group_id, self._env)

    def _register(self, group: ConsumerGroup, now_ms: int) -> None:
        """The group is new. Classic members that it takes over are told to join again, which they may do at
        once.
        """
        settings = self.settings_for(group.group_id)
        for member in group.members.values():
            if member.uses_classic_protocol:
                self._expect_heartbeat(group, member, settings, now_ms)
        self._registry.replace(group)

    def _expect_heartbeat(
        self, group: ConsumerGroup, member: ConsumerGroupMember, settings: ConsumerGroupSettings, now_ms: int
    ) -> None:
        timeout_ms = member.classic.session_timeout_ms if member.classic else settings.session_timeout_ms
        self.schedule(MemberTimer.SESSION, group, member.member_id, now_ms + timeout_ms)

    def _schedule_rebalance(self, group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int) -> None:
        expire = partial(self._expire, group, member.member_id, at_epoch=member.member_epoch)
        group.timers.schedule(
            MemberTimer.REBALANCE, member.member_id, now_ms + member.rebalance_timeout_ms, expire
        )

    def _expire(self, group: ConsumerGroup, member_id: str, now_ms: int, at_epoch: int | None = None) -> None:
        member = group.members.get(member_id)
        if member is not None and at_epoch in (None, member.member_epoch):
            with suppress(
                CoordinatorNotAvailable
            ):  # nobody waits for it; the next change stores this one too
                self.fence(group, (member,), now_ms, None)
