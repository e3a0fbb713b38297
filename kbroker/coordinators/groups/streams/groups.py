"""The streams groups (KIP-1071): what a heartbeat does to a group, and what happens when one does not come.

A heartbeat has five parts: the member is created or brought up to date; the topology is held against the
topics, if they have changed; the group epoch grows if anything of that is new; the target is computed if it
is older than the group epoch, and nothing delays it; the member takes a step towards it. Topics that are
missing are named in the result: whoever asked creates them.

Invariants:
- A request that is refused has changed nothing: every check comes before the first change.
- An answer is given when what it says is stored.
- A heartbeat is never held back to wait for others; how soon the next one comes is the answer's to say.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TypeVar

from kbroker.coordinators.groups.assignors.streams_sticky import StreamsMemberSpec, assign_sticky
from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import CoordinatorNotAvailable, GroupIdNotFound, GroupMaxSizeReached
from kbroker.coordinators.groups.group import GroupRegistry
from kbroker.coordinators.groups.member_timers import MemberTimer
from kbroker.coordinators.groups.saving import when_group_saved
from kbroker.coordinators.groups.store import StoredGroup
from kbroker.coordinators.groups.streams import snapshot
from kbroker.coordinators.groups.streams.configured_topology import (
    ConfiguredTopology,
    Status,
    StatusCode,
    configure,
)
from kbroker.coordinators.groups.streams.endpoints import partitions_by_endpoint
from kbroker.coordinators.groups.streams.group import NOT_VALIDATED, StreamsGroup
from kbroker.coordinators.groups.streams.heartbeat_member import (
    brought_up_to_date,
    check_tasks,
    check_topology,
    find_or_make_member,
)
from kbroker.coordinators.groups.streams.member import MemberState, StreamsMember
from kbroker.coordinators.groups.streams.reconciliation import Reconciliation, reconcile
from kbroker.coordinators.groups.streams.requests import (
    HeartbeatRequest,
    HeartbeatResult,
    validate_heartbeat,
)
from kbroker.coordinators.groups.streams.settings import SettingsFor, StreamsGroupSettings
from kbroker.coordinators.groups.streams.tasks import NO_TASKS, Tasks
from kbroker.pending import Pending

T = TypeVar("T")

_WAITS_FOR_MEMBERS = Status(StatusCode.ASSIGNMENT_DELAYED, "more members may be about to join the new group")
_WAITS_FOR_INTERVAL = Status(StatusCode.ASSIGNMENT_DELAYED, "the last assignment was a moment ago")


class StreamsGroups:
    def __init__(
        self,
        env: GroupEnvironment,
        registry: GroupRegistry,
        settings_for: SettingsFor = lambda group_id: StreamsGroupSettings(),
    ) -> None:
        self._env = env
        self._registry = registry
        self.settings_for = settings_for

    # requests

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResult | Pending[HeartbeatResult]:
        self._env.timers.advance(now_ms)
        validate_heartbeat(request)
        if request.member_epoch < 0:
            return self._leave(request, now_ms)
        joins = request.member_epoch == 0
        settings = self.settings_for(request.group_id)
        group = self._find_or_make(request) if joins else self.group(request.group_id)
        if len(group.members) >= settings.max_size and joins and request.member_id not in group.members:
            raise GroupMaxSizeReached(f"the group has {settings.max_size} members already")
        member = find_or_make_member(group, request)
        updated = brought_up_to_date(member, request)
        check_topology(group, request)
        topology, topics_hash = self._look_at_topics(group)
        check_tasks(topology, request.owned)

        # Nothing is refused from here on.
        if request.member_id not in group.members:
            self._note_newcomer(group, updated, settings, now_ms)
        if updated is not member or self._is_news(group, topology, topics_hash, settings):
            group.metadata_hash = topics_hash
            group.validated_epoch = group.topology.epoch if topology.is_ready else NOT_VALIDATED
            group.standby_replicas = settings.num_standby_replicas
            group.bump_epoch(now_ms)
        group.configured, group.metadata_refresh_requested = topology, False
        group.put(updated)
        target, delay = self._target(group, updated, topology, settings, now_ms)
        updated = self._reconcile(group, updated, target, request.owned, now_ms)
        self._schedule(MemberTimer.SESSION, group, updated, now_ms + settings.session_timeout_ms)
        if request.shutdown_application:
            group.shutdown_asked_by = group.shutdown_asked_by or updated.member_id
        result = HeartbeatResult(
            updated.member_id,
            updated.member_epoch,
            group.next_heartbeat_ms(settings.heartbeat_interval_ms, now_ms, settled=group.state == "Stable"),
            updated.assigned if joins or request.is_full or updated.assigned != member.assigned else None,
            _statuses(group, updated, delay, topology),
            to_create=topology.missing,
        )
        moved = joins or updated.assigned != member.assigned
        self._tell_endpoints(group, updated, request, result, moved=moved)
        if self._registry.groups.get(group.group_id) is not group:
            self._registry.replace(group)
        return self._when_saved(group, result)

    def _leave(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResult | Pending[HeartbeatResult]:
        group = self.group(request.group_id)
        member = group.member(request.member_id)
        if request.shutdown_application:
            group.shutdown_asked_by = group.shutdown_asked_by or member.member_id
        return self._fence(group, member, now_ms, HeartbeatResult(request.member_id, request.member_epoch))

    def group(self, group_id: str) -> StreamsGroup:
        group = self._registry.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, StreamsGroup):
            raise GroupIdNotFound(f"group {group_id} does not use the streams protocol")
        return group

    # the steps of a heartbeat

    def _find_or_make(self, request: HeartbeatRequest) -> StreamsGroup:
        group = self._registry.groups.get(request.group_id)
        if group is None or (isinstance(group, ClassicGroup) and group.is_empty):
            assert request.topology is not None, "who joins brings one"
            return StreamsGroup(request.group_id, self._env, request.topology)
        return self.group(request.group_id)

    def _look_at_topics(self, group: StreamsGroup) -> tuple[ConfiguredTopology, int]:
        """The topology as the topics let it be now, and the hash of what they are."""
        if group.configured is not None and not group.metadata_refresh_requested:
            return group.configured, group.metadata_hash
        topics_hash = group.topics_hash()
        if group.configured is not None and topics_hash == group.metadata_hash:
            return group.configured, topics_hash
        return configure(group.topology, self._env.topics.partition_count), topics_hash

    def _is_news(
        self,
        group: StreamsGroup,
        topology: ConfiguredTopology,
        topics_hash: int,
        settings: StreamsGroupSettings,
    ) -> bool:
        """Whether tasks, or what is to be assigned of them, may be others than before."""
        return (
            topics_hash != group.metadata_hash
            or topology.is_ready != (group.validated_epoch != NOT_VALIDATED)
            or settings.num_standby_replicas != group.standby_replicas
        )

    def _note_newcomer(
        self, group: StreamsGroup, member: StreamsMember, settings: StreamsGroupSettings, now_ms: int
    ) -> None:
        if group.is_empty:
            delay_ms = settings.initial_rebalance_delay_ms
            group.begin_initial_delay(delay_ms, member.rebalance_timeout_ms, now_ms)
        else:
            group.member_came(now_ms)

    def _target(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        topology: ConfiguredTopology,
        settings: StreamsGroupSettings,
        now_ms: int,
    ) -> tuple[Tasks, Status | None]:
        """What the member moves to, and why that is not the newest, if it is not."""
        delay = None
        if group.group_epoch > group.assignment_epoch:
            if group.waits_for_more(now_ms):
                return NO_TASKS, _WAITS_FOR_MEMBERS
            if group.wants_target(settings.assignment_interval_ms, now_ms):
                group.set_target(_compute_target(group, topology, settings), now_ms)
            else:
                delay = _WAITS_FOR_INTERVAL
        return group.target.get(member.member_id, NO_TASKS), delay

    def _reconcile(
        self, group: StreamsGroup, member: StreamsMember, target: Tasks, owned: Tasks | None, now_ms: int
    ) -> StreamsMember:
        reconciled = reconcile(
            member,
            Reconciliation(
                group.assignment_epoch,
                target,
                group.is_active,
                partial(group.is_in_process, member.process_id),
                owned,
            ),
        )
        if reconciled is member:
            return member
        group.put(reconciled)
        group.changed_ms = now_ms
        if reconciled.state is MemberState.UNREVOKED_TASKS:
            self._schedule_rebalance(group, reconciled, now_ms)
        else:
            group.timers.cancel(MemberTimer.REBALANCE, reconciled.member_id)
        return reconciled

    def _tell_endpoints(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        request: HeartbeatRequest,
        result: HeartbeatResult,
        *,
        moved: bool,
    ) -> None:
        """`moved`: whether the member has joined or has other tasks."""
        epoch = group.endpoint_information_epoch
        if moved and member.user_endpoint is not None:
            epoch += 1
        if epoch != request.endpoint_information_epoch and group.configured is not None:
            result.partitions_by_endpoint = partitions_by_endpoint(
                group.members.values(), group.configured, self._env.topics
            )
        if self._registry.groups.get(group.group_id) is group:
            group.endpoint_information_epoch = epoch  # that of a new group is 0, as in Kafka
        result.endpoint_information_epoch = group.endpoint_information_epoch

    # members that go

    def _fence(self, group: StreamsGroup, member: StreamsMember, now_ms: int, result: T) -> T | Pending[T]:
        """Remove a member that leaves, or has been too slow. The result, when that is stored."""
        group.remove(member.member_id)
        group.timers.cancel_all((member.member_id,))
        group.bump_epoch(now_ms)
        return self._when_saved(group, result)

    def _schedule(
        self, timer: MemberTimer, group: StreamsGroup, member: StreamsMember, deadline_ms: int
    ) -> None:
        group.timers.schedule(
            timer, member.member_id, deadline_ms, partial(self._expire, group, member.member_id)
        )

    def _schedule_rebalance(self, group: StreamsGroup, member: StreamsMember, now_ms: int) -> None:
        expire = partial(self._expire, group, member.member_id, at_epoch=member.member_epoch)
        group.timers.schedule(
            MemberTimer.REBALANCE, member.member_id, now_ms + member.rebalance_timeout_ms, expire
        )

    def _expire(self, group: StreamsGroup, member_id: str, now_ms: int, at_epoch: int | None = None) -> None:
        member = group.members.get(member_id)
        if member is not None and at_epoch in (None, member.member_epoch):
            with suppress(CoordinatorNotAvailable):  # nobody waits; the next change stores this one too
                self._fence(group, member, now_ms, None)

    # what happens without a request

    def restore(self, stored: StoredGroup, now_ms: int) -> StreamsGroup:
        """The group as it was stored; its members have a session timeout to show up."""
        group = snapshot.restore(stored, self._env)
        group.changed_ms = now_ms
        timeout_ms = self.settings_for(group.group_id).session_timeout_ms
        for member in group.members.values():
            self._schedule(MemberTimer.SESSION, group, member, now_ms + timeout_ms)
            if member.state is MemberState.UNREVOKED_TASKS:
                self._schedule_rebalance(group, member, now_ms)
        return group

    def topic_changed(self, topic: str) -> None:
        """The topic has been created, has grown, or is gone."""
        for group in self._registry.groups.values():
            if isinstance(group, StreamsGroup) and topic in group.topics:
                group.metadata_refresh_requested = True

    def _when_saved(self, group: StreamsGroup, result: T) -> T | Pending[T]:
        return when_group_saved(self._env.store, group, snapshot.group_state, snapshot.member_state, result)


def _compute_target(
    group: StreamsGroup, topology: ConfiguredTopology, settings: StreamsGroupSettings
) -> dict[str, Tasks]:
    """Nothing for anybody while the topology is not ready."""
    if not topology.is_ready:
        return {}
    members = {
        member_id: StreamsMemberSpec(member.process_id, group.target.get(member_id, NO_TASKS))
        for member_id, member in group.members.items()
    }
    stateful = {id_ for id_, each in topology.subtopologies.items() if each.is_stateful}
    return assign_sticky(members, topology.tasks(), stateful, settings.num_standby_replicas)


def _statuses(
    group: StreamsGroup, member: StreamsMember, delay: Status | None, topology: ConfiguredTopology
) -> list[Status]:
    statuses = []
    if member.topology_epoch < group.topology.epoch:
        told = f"the member's topology epoch {member.topology_epoch} is older than {group.topology.epoch}"
        statuses.append(Status(StatusCode.STALE_TOPOLOGY, told))
    if delay is not None:
        statuses.append(delay)
    if topology.problem is not None:
        statuses.append(topology.problem)
    if group.shutdown_asked_by is not None:
        told = f"the member {group.shutdown_asked_by} has failed and wants the whole application to stop"
        statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, told))
    return statuses
