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
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from kbroker.coordinators.groups import consumer_snapshot
from kbroker.coordinators.groups.consumer_group import ConsumerGroup
from kbroker.coordinators.groups.consumer_member import (
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroupMember,
    MemberState,
    Owned,
)
from kbroker.coordinators.groups.consumer_requests import (
    HeartbeatRequest,
    HeartbeatResult,
    validate_heartbeat,
)
from kbroker.coordinators.groups.consumer_settings import ConsumerGroupSettings, SettingsFor
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    UnreleasedInstanceId,
)
from kbroker.coordinators.groups.group import Group
from kbroker.coordinators.groups.heartbeat_pacing import assignment_interval_ms, heartbeat_interval_ms
from kbroker.coordinators.groups.member_timers import MemberTimer
from kbroker.coordinators.groups.reconciliation import Reconciliation, reconcile
from kbroker.coordinators.groups.store import StoredGroup
from kbroker.coordinators.groups.target_assignment import compute_target
from kbroker.coordinators.groups.topic_regex import validate_regex
from kbroker.storage.pending import Pending

T = TypeVar("T")


class GroupRegistry(Protocol):
    """Where the groups of all types are, by id."""

    @property
    def groups(self) -> dict[str, Group]: ...

    def replace(self, group: Group) -> None:
        """From now on this is the group of its id."""
        ...


class ConsumerGroups:
    def __init__(
        self,
        env: GroupEnvironment,
        registry: GroupRegistry,
        settings_for: SettingsFor = lambda group_id: ConsumerGroupSettings(),
    ) -> None:
        self._env = env
        self._registry = registry
        self._settings_for = settings_for

    # requests

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResult | Pending[HeartbeatResult]:
        settings = self._settings_for(request.group_id)
        validate_heartbeat(request, settings.assignors)
        if request.member_epoch < 0:
            return self._leave(request, now_ms)
        joins = request.member_epoch == 0
        group = self._find_or_make(request.group_id) if joins else self.group(request.group_id)
        member_id = request.member_id or self._env.new_id()
        if len(group.members) >= settings.max_size and member_id not in group.members:
            raise GroupMaxSizeReached(
                f"The consumer group has reached its maximum capacity of {settings.max_size} members."
            )
        member, replaced = _find_or_make_member(group, member_id, request)
        updated = _brought_up_to_date(member, request)
        if updated.subscribed_topic_regex and updated.subscribed_topic_regex != member.subscribed_topic_regex:
            validate_regex(updated.subscribed_topic_regex)

        # Nothing is refused from here on.
        self._register(group)
        if replaced is not None:
            group.timers.cancel_all((replaced.member_id,))
            group.replace_static(replaced, member)
        updated = self.update_member(group, member, updated, request.owned, settings, now_ms)
        self._schedule_session(group, member_id, now_ms + settings.session_timeout_ms)
        result = HeartbeatResult(member_id, updated.member_epoch, self._interval_ms(group, settings, now_ms))
        if joins or request.is_full or updated.assigned != member.assigned:
            result.assignment = updated.assigned
        return self.when_saved(group, result)

    def _leave(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResult | Pending[HeartbeatResult]:
        group = self.group(request.group_id)
        result = HeartbeatResult(request.member_id, request.member_epoch)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = group.known_static_member(request.instance_id, request.member_id)
            if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
                group.put(member.left_for_a_while())
                return self.when_saved(group, result)
        self.fence(group, (member,), now_ms)
        return self.when_saved(group, result)

    def group(self, group_id: str) -> ConsumerGroup:
        group = self._registry.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return group

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
        if subscription_changed or group.metadata_refresh_requested:
            topics_changed = group.refresh_metadata()
            if subscription_changed or topics_changed:
                group.bump_epoch(now_ms)
        if group.assignment_epoch < group.group_epoch and _may_assign(group, settings, now_ms):
            group.set_target(compute_target(group, settings.assignors[0]), now_ms)
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

    def fence(self, group: ConsumerGroup, members: Collection[ConsumerGroupMember], now_ms: int) -> None:
        """Remove members that leave, or that have not done in time what they had to."""
        if not members:
            return
        for member in members:
            group.remove(member.member_id)
        group.timers.cancel_all(member.member_id for member in members)
        group.refresh_metadata()
        group.bump_epoch(now_ms)

    def when_saved(self, group: ConsumerGroup, result: T) -> T | Pending[T]:
        """The result, once the group as it is now is stored."""
        saved = self._save(group)
        if saved is None:
            return result
        answer: Pending[T] = Pending()

        def settle(saved: Pending[None]) -> None:
            try:
                saved.result()
            except Exception as error:
                refusal = CoordinatorNotAvailable(f"the group {group.group_id} could not be stored")
                refusal.__cause__ = error
                answer.fail(refusal)
            else:
                answer.resolve(result)

        saved.then(settle)
        return answer.result() if answer.done else answer

    # what happens without a request

    def restore(self, stored: StoredGroup, now_ms: int) -> ConsumerGroup:
        """The group as it was stored; its members have a session timeout to show up."""
        group = consumer_snapshot.restore(stored, self._env)
        group.changed_ms = now_ms
        settings = self._settings_for(group.group_id)
        for member in group.members.values():
            self._schedule_session(group, member.member_id, now_ms + settings.session_timeout_ms)
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

    def _find_or_make(self, group_id: str) -> ConsumerGroup:
        group = self._registry.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None or group.is_empty:
            return ConsumerGroup(group_id, self._env)
        raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")

    def _register(self, group: ConsumerGroup) -> None:
        if self._registry.groups.get(group.group_id) is not group:
            self._registry.replace(group)

    def _schedule_session(self, group: ConsumerGroup, member_id: str, deadline_ms: int) -> None:
        group.timers.schedule(
            MemberTimer.SESSION, member_id, deadline_ms, partial(self._expire, group, member_id)
        )

    def _schedule_rebalance(self, group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int) -> None:
        expire = partial(self._expire, group, member.member_id, at_epoch=member.member_epoch)
        group.timers.schedule(
            MemberTimer.REBALANCE, member.member_id, now_ms + member.rebalance_timeout_ms, expire
        )

    def _expire(self, group: ConsumerGroup, member_id: str, now_ms: int, at_epoch: int | None = None) -> None:
        member = group.members.get(member_id)
        if member is not None and at_epoch in (None, member.member_epoch):
            self.fence(group, (member,), now_ms)
            self._save(group)

    def _interval_ms(self, group: ConsumerGroup, settings: ConsumerGroupSettings, now_ms: int) -> int:
        return heartbeat_interval_ms(
            settings.heartbeat_interval_ms,
            members=len(group.members),
            stable=group.state == "Stable",
            unchanged_for_ms=now_ms - group.changed_ms,
        )

    def _save(self, group: ConsumerGroup) -> Pending[None] | None:
        unsaved = group.take_unsaved()
        if unsaved is None:
            return None
        members = {member_id: consumer_snapshot.member_state(group, member_id) for member_id in unsaved}
        return self._env.store.save_group(
            group.group_id, group.type, consumer_snapshot.group_state(group), members
        )


def _find_or_make_member(
    group: ConsumerGroup, member_id: str, request: HeartbeatRequest
) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
    """The member as it stands, and the static member in whose place it comes, if any."""
    joins = request.member_epoch == 0
    if request.instance_id is None:
        if joins and member_id not in group.members:
            return ConsumerGroupMember(member_id), None
        member = group.member(member_id)
    elif joins:
        existing = group.static_member(request.instance_id)
        if existing is None:
            return group.members.get(member_id, ConsumerGroupMember(member_id)), None
        if not existing.uses_classic_protocol and not existing.has_left_for_a_while:
            raise UnreleasedInstanceId(
                f"Static member {member_id} with instance id {request.instance_id} cannot join the group "
                f"because the instance id is owned by {existing.member_id} member."
            )
        return existing.replaced_by(member_id), existing
    else:
        member = group.known_static_member(request.instance_id, member_id)
    _check_epoch(member, request.member_epoch, request.owned)
    return member, None


def _check_epoch(member: ConsumerGroupMember, member_epoch: int, owned: Owned | None) -> None:
    """A member may be one epoch behind if it may have missed the answer that raised it.

    Epoch 0 is a new start.
    """
    if member_epoch in (0, member.member_epoch):
        return
    missed_the_answer = (
        member_epoch == member.previous_member_epoch
        and member_epoch < member.member_epoch
        and owned is not None
        and member.holds_only(owned)
    )
    if not missed_the_answer:
        comparison = "greater" if member_epoch > member.member_epoch else "smaller"
        raise FencedMemberEpoch(
            f"The consumer group member has a {comparison} member epoch ({member_epoch}) than the one known "
            f"by the group coordinator ({member.member_epoch}). The member must abandon all its partitions "
            "and rejoin."
        )


def _brought_up_to_date(member: ConsumerGroupMember, request: HeartbeatRequest) -> ConsumerGroupMember:
    """The member with what the request says of it; the same object if that is nothing new."""
    said: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "server_assignor": request.server_assignor,
        "subscribed_topic_regex": request.subscribed_topic_regex,
        "client_id": request.client_id,
        "client_host": request.client_host,
    }
    if request.subscribed_topic_names is not None:
        said["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    news = {
        name: value for name, value in said.items() if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        news["classic"] = None
    return replace(member, **news) if news else member


def _may_assign(group: ConsumerGroup, settings: ConsumerGroupSettings, now_ms: int) -> bool:
    if not group.assignment_timestamp_ms:
        return True
    partitions = sum(group.subscriptions.partition_counts().values())
    interval_ms = assignment_interval_ms(
        settings.assignment_interval_ms, members=len(group.members), partitions=partitions
    )
    return interval_ms == 0 or now_ms >= group.assignment_timestamp_ms + interval_ms
