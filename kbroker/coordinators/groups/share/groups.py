"""The share groups (KIP-932): what a heartbeat does to a group, and what happens when one does not come.

A heartbeat has four parts: the member is created or brought up to date; the group epoch grows if
subscriptions or subscribed topics have changed; the target is computed if it is older than the group epoch,
and the partitions in it get a state; the member takes its target.

Invariants:
- A request that is refused has changed nothing: every check comes before the first change.
- An answer is given when what it says is stored. A partition that it names has a state by then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from kbroker.coordinators.groups.assignors.simple import assign_simple
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    GroupMaxSizeReached,
)
from kbroker.coordinators.groups.group import GroupRegistry
from kbroker.coordinators.groups.member_timers import MemberTimer
from kbroker.coordinators.groups.modern_member import with_news
from kbroker.coordinators.groups.modern_snapshot import when_members_saved
from kbroker.coordinators.groups.saving import when_stored
from kbroker.coordinators.groups.share import snapshot
from kbroker.coordinators.groups.share.group import Rights, ShareGroup
from kbroker.coordinators.groups.share.requests import (
    ShareHeartbeatRequest,
    ShareHeartbeatResult,
    validate_heartbeat,
)
from kbroker.coordinators.groups.share.settings import SettingsFor, ShareGroupSettings
from kbroker.coordinators.groups.store import StoredGroup
from kbroker.coordinators.groups.target_assignment import compute_target
from kbroker.coordinators.shares.states import ShareStates
from kbroker.pending import Pending, join

T = TypeVar("T")


class ShareGroups:
    def __init__(
        self,
        env: GroupEnvironment,
        registry: GroupRegistry,
        states: Callable[[], ShareStates],
        rights: Callable[[], Rights],
        settings_for: SettingsFor = lambda group_id: ShareGroupSettings(),
    ) -> None:
        """`states` and `rights`: asked for when they are needed first."""
        self._env = env
        self._registry = registry
        self._states = states
        self.settings_for = settings_for
        self._rights = rights

    # requests

    def heartbeat(
        self, request: ShareHeartbeatRequest, now_ms: int
    ) -> ShareHeartbeatResult | Pending[ShareHeartbeatResult]:
        self._env.timers.advance(now_ms)
        validate_heartbeat(request)
        if request.member_epoch < 0:
            return self._leave(request, now_ms)
        settings = self.settings_for(request.group_id)
        joins = request.member_epoch == 0
        group = self.find_or_make(request.group_id) if joins else self.group(request.group_id)
        if request.member_id not in group.members and len(group.members) >= settings.max_size:
            raise GroupMaxSizeReached(f"the group has {settings.max_size} members already")
        member = group.member_at(request.member_id, request.member_epoch)

        # Nothing is refused from here on.
        names = request.subscribed_topic_names
        updated = with_news(
            member,
            {
                "rack_id": request.rack_id,
                "client_id": request.client_id,
                "client_host": request.client_host,
                "subscribed_topic_names": None if names is None else frozenset(names),
            },
        )
        resubscribed = updated.subscribed_topic_names != member.subscribed_topic_names
        group.put(updated)
        group.note_subscription(now_ms, changed=resubscribed)
        if group.wants_target(settings.assignment_interval_ms, now_ms):
            group.set_target(compute_target(group, assign_simple), now_ms)
            group.initialization_requested = True
        updated = group.caught_up(updated, self._rights(), subscription_changed=resubscribed)
        if updated.member_epoch != member.member_epoch:
            group.changed_ms = now_ms
        group.put(updated)
        self._expect_heartbeat(group, updated.member_id, settings, now_ms)
        settled = group.assignment_epoch == group.group_epoch
        interval_ms = group.next_heartbeat_ms(settings.heartbeat_interval_ms, now_ms, settled=settled)
        result = ShareHeartbeatResult(updated.member_id, updated.member_epoch, interval_ms)
        if joins or names is not None or updated.assigned != member.assigned:
            result.assignment = updated.assigned
        if self._registry.groups.get(group.group_id) is not group:
            self._registry.replace(group)
        return self._stored(group, result)

    def _leave(
        self, request: ShareHeartbeatRequest, now_ms: int
    ) -> ShareHeartbeatResult | Pending[ShareHeartbeatResult]:
        group = self.group(request.group_id)
        member = group.member(request.member_id)
        return self._fence(
            group, member.member_id, now_ms, ShareHeartbeatResult(member.member_id, request.member_epoch)
        )

    def group(self, group_id: str) -> ShareGroup:
        group = self._registry.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise GroupIdNotFound(f"group {group_id} is not a share group")
        return group

    def find_or_make(self, group_id: str) -> ShareGroup:
        """A new one is not in the registry yet."""
        if group_id in self._registry.groups:
            return self.group(group_id)
        return ShareGroup(group_id, self._env)

    def create_empty(self, group_id: str, now_ms: int) -> ShareGroup | Pending[ShareGroup]:
        """The group, made if there is none: its states may be set before anybody joins."""
        self._env.timers.advance(now_ms)
        group = self.find_or_make(group_id)
        if group_id not in self._registry.groups:
            self._registry.replace(group)
        return self._saved(group, group)

    # what happens without a request

    def restore(self, stored: StoredGroup, now_ms: int) -> ShareGroup:
        """The group as it was stored; its members have a session timeout to show up."""
        group = snapshot.restore(stored, self._env)
        group.changed_ms = now_ms
        settings = self.settings_for(group.group_id)
        for member_id in group.members:
            self._expect_heartbeat(group, member_id, settings, now_ms)
        return group

    def topic_changed(self, topic: str) -> None:
        """The topic has been created, has grown, or is deleted."""
        for group in self._registry.groups.values():
            if isinstance(group, ShareGroup) and group.is_subscribed_to(topic):
                group.metadata_refresh_requested = True

    def forget_states(self, group: ShareGroup) -> Pending[None]:
        """The group is being deleted. Who joins it meanwhile finds no states, and has to get new ones."""

        def request_initialization(_: Pending[None]) -> None:
            group.initialization_requested = True

        forgotten = self._states().delete_group(group.group_id)
        forgotten.then(request_initialization)
        return forgotten

    # internals

    def _stored(self, group: ShareGroup, result: T) -> T | Pending[T]:
        """The result, when the group is stored and all partitions that it reads have a state."""
        initializing = self._initialize(group)
        saved = self._saved(group, result)
        if initializing is None:
            return saved
        return join([when_stored(group.group_id, initializing, result), saved], lambda results: results[0])

    def _initialize(self, group: ShareGroup) -> Pending[None] | None:
        """Give its partitions states, if some may have none. What is under way."""
        if not group.initialization_requested:
            return group.initializing

        def done(initializing: Pending[None]) -> None:
            if not initializing.succeeded:
                group.initialization_requested = True  # the next heartbeat tries again
            if group.initializing is initializing:
                group.initializing = None

        group.initialization_requested = False
        initializing = group.initializing = self._states().initialize(group.group_id, group.partitions())
        initializing.then(done)
        return initializing

    def _saved(self, group: ShareGroup, result: T) -> T | Pending[T]:
        return when_members_saved(self._env.store, group, snapshot.member_state, result)

    def _fence(self, group: ShareGroup, member_id: str, now_ms: int, result: T) -> T | Pending[T]:
        """Remove a member that leaves, or that was silent for too long. What it holds stays with it until its
        locks run out.
        """
        group.remove(member_id)
        group.timers.cancel_all((member_id,))
        self._rights().forget(group.group_id, member_id)
        group.refresh_metadata()
        group.bump_epoch(now_ms)
        return self._saved(group, result)

    def _expect_heartbeat(
        self, group: ShareGroup, member_id: str, settings: ShareGroupSettings, now_ms: int
    ) -> None:
        group.timers.schedule(
            MemberTimer.SESSION,
            member_id,
            now_ms + settings.session_timeout_ms,
            partial(self._expire, group, member_id),
        )

    def _expire(self, group: ShareGroup, member_id: str, now_ms: int) -> None:
        if member_id in group.members:
            # Nobody waits for it; the next change stores this one too.
            with suppress(CoordinatorNotAvailable):
                self._fence(group, member_id, now_ms, None)
