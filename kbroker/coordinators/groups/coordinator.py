"""The group coordinator: the groups by id, the rules about their types, a request's way to its group.

A group has one type at a time. A join by the other protocol turns an empty group into one of that protocol,
and a group with members where migration allows it (consumer_groups, classic_members). That is between the
classic and the consumer protocol: a share group stays one until it is deleted.

A classic member of a consumer group is served by `consumer_groups.classic`: join(group, JoinRequest, now_ms)
and sync(group, SyncRequest, now_ms) answer like ClassicGroup's, heartbeat(group, member_id, instance_id,
generation_id, now_ms) raises like it, leave(group, leaving, now_ms) gives a Pending of LeaveResults.

Every method that takes `now_ms` tells the timers the time. `tick` does what is due, `next_deadline` is when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.classic.protocol import (
    NO_MEMBER_ID,
    GroupDescription,
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.groups import ConsumerGroups
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings, SettingsFor
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    GroupError,
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from kbroker.coordinators.groups.group import Group
from kbroker.coordinators.groups.offsets.manager import OffsetManager
from kbroker.pending import Pending, after

if TYPE_CHECKING:
    from kbroker.coordinators.groups.share.groups import ShareGroups
    from kbroker.coordinators.groups.streams.groups import StreamsGroups

SHARE = "share"
STREAMS = "streams"
_EXPIRY_KEY = ("offset-expiry",)


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    type: str


class GroupCoordinator:
    def __init__(
        self,
        environment: GroupEnvironment,
        consumer_settings_for: SettingsFor = lambda group_id: ConsumerGroupSettings(),
        open_share_groups: Callable[[GroupCoordinator], ShareGroups] | None = None,
        open_streams_groups: Callable[[GroupCoordinator], StreamsGroups] | None = None,
    ) -> None:
        """`open_share_groups` and `open_streams_groups`: asked with the first group of the type."""
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetManager(environment, self)
        self.consumer_groups = ConsumerGroups(environment, self, consumer_settings_for)
        self._environment = environment
        self._timers = environment.timers
        self._open_share_groups = open_share_groups
        self._open_streams_groups = open_streams_groups

    @cached_property
    def share_groups(self) -> ShareGroups:
        assert self._open_share_groups is not None
        return self._open_share_groups(self)

    @cached_property
    def streams_groups(self) -> StreamsGroups:
        assert self._open_streams_groups is not None
        return self._open_streams_groups(self)

    @property
    def environment(self) -> GroupEnvironment:
        return self._environment

    def load(self, now_ms: int) -> None:
        """Take over what was stored, once, before the first request."""
        self._timers.advance(now_ms)
        stored = self._environment.store.load()
        for stored_group in stored.groups:
            if stored_group.type == ConsumerGroup.type:
                self.groups[stored_group.group_id] = self.consumer_groups.restore(stored_group, now_ms)
            elif stored_group.type == SHARE:
                self.groups[stored_group.group_id] = self.share_groups.restore(stored_group, now_ms)
            elif stored_group.type == STREAMS:
                self.groups[stored_group.group_id] = self.streams_groups.restore(stored_group, now_ms)
            else:
                group = ClassicGroup(stored_group.group_id, self._environment, now_ms)
                group.restore(stored_group.state)
                group.start(now_ms)
                self.groups[stored_group.group_id] = group
        for group_id in self.offsets.load(stored):
            self.get_or_create_simple(group_id, now_ms)
        self._schedule_expiry(now_ms)

    def close(self) -> None:
        """No more requests: whoever waits is told to look elsewhere."""
        for group in list(self.groups.values()):
            group.close(NotCoordinator("the coordinator is shutting down"))
        self.offsets.close()

    # time

    def tick(self, now_ms: int) -> None:
        self._timers.fire(now_ms)

    def next_deadline(self) -> int | None:
        return self._timers.next_deadline()

    def _schedule_expiry(self, now_ms: int) -> None:
        interval_ms = self._environment.settings.offsets_retention_check_interval_ms
        self._timers.schedule(_EXPIRY_KEY, now_ms + interval_ms, self._expire_offsets)

    def _expire_offsets(self, now_ms: int) -> None:
        self.offsets.expire(now_ms)
        self._schedule_expiry(now_ms)

    # the registry

    def replace(self, group: Group) -> None:
        """From now on this is the group of its id; whoever waits in the old one joins again."""
        old = self.groups.get(group.group_id)
        self.groups[group.group_id] = group
        if old is not None and old is not group:
            old.close(RebalanceInProgress("the group has changed its protocol"))

    def get_or_create_simple(self, group_id: str, now_ms: int) -> Group:
        """The group, or a new one that nobody has joined: a name to commit offsets under."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, self._environment, now_ms)
        return group

    def forget_if_empty(self, group: Group) -> Pending[None]:
        """Delete the group and its offsets. It stays if somebody joins while that is being stored."""

        def forget(done: Pending[None]) -> None:
            if self.groups.get(group.group_id) is group and group.is_empty and _succeeded(done):
                del self.groups[group.group_id]
                group.close(GroupIdNotFound(f"the group {group.group_id} is deleted"))

        deleted = self.offsets.delete_group(group.group_id)
        deleted.then(forget)
        return deleted

    # the classic protocol

    def join_group(self, request: JoinRequest, now_ms: int) -> Pending[JoinResult]:
        self._timers.advance(now_ms)
        try:
            return self._join_group(request, now_ms)
        except GroupError as error:
            return Pending.failed(error)

    def _join_group(self, request: JoinRequest, now_ms: int) -> Pending[JoinResult]:
        settings = self._environment.settings
        _require_group_id(request.group_id)
        lowest, highest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            raise InvalidSessionTimeout(f"the session timeout must be from {lowest} to {highest} ms")
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                return self.consumer_groups.classic.join(group, request, now_ms)
            group = None
        if isinstance(group, ClassicGroup):
            return group.join(request, now_ms)
        if group is not None and not (group.type == STREAMS and group.is_empty):
            raise InconsistentGroupProtocol(
                f"group {request.group_id} is a {group.type} group", member_id=NO_MEMBER_ID
            )
        if request.member_id != NO_MEMBER_ID:
            raise UnknownMemberId(f"Group {request.group_id} not found.")
        new = ClassicGroup(request.group_id, self._environment, now_ms)
        self.replace(new)
        new.save()
        return new.join(request, now_ms)

    def sync_group(self, request: SyncRequest, now_ms: int) -> Pending[SyncResult]:
        self._timers.advance(now_ms)
        try:
            group = self._group_of_member(request.group_id)
            if group.is_empty:
                raise UnknownMemberId(f"the group {request.group_id} has no members")
            if isinstance(group, ConsumerGroup):
                return self.consumer_groups.classic.sync(group, request, now_ms)
            return group.sync(request, now_ms)
        except GroupError as error:
            return Pending.failed(error)

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int, now_ms: int
    ) -> None:
        """Raises what the member has to know."""
        self._timers.advance(now_ms)
        group = self._group_of_member(group_id)
        if isinstance(group, ConsumerGroup):
            self.consumer_groups.classic.heartbeat(group, member_id, group_instance_id, generation_id, now_ms)
        else:
            group.heartbeat(member_id, group_instance_id, generation_id, now_ms)

    def leave_group(
        self, group_id: str, leaving: Sequence[LeavingMember], now_ms: int
    ) -> Pending[list[LeaveResult]]:
        self._timers.advance(now_ms)
        _require_group_id(group_id)
        try:
            group = self._group_of_member(group_id)
        except UnknownMemberId as error:
            return Pending.resolved([LeaveResult(m.member_id, m.group_instance_id, error) for m in leaving])
        if isinstance(group, ConsumerGroup):
            return self.consumer_groups.classic.leave(group, leaving, now_ms)
        return Pending.resolved(group.leave(leaving, now_ms))

    def _group_of_member(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        _require_group_id(group_id)
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup | ConsumerGroup):
            raise UnknownMemberId(f"Group {group_id} not found.")
        return group

    # administration

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """The groups in one of these states and of one of these types, without regard to case; none: any."""
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {type.lower() for type in types}
        return [
            ListedGroup(group.group_id, group.protocol_type or "", str(group.state), group.type)
            for group in self.groups.values()
            if (not states or group.state.lower() in wanted_states)
            and (not types or group.type in wanted_types)
        ]

    def describe_classic(self, group_id: str) -> GroupDescription:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"group {group_id} does not use the classic protocol")
        return group.describe()

    def delete_group(self, group_id: str, now_ms: int) -> Pending[None]:
        self._timers.advance(now_ms)
        group = self.groups.get(group_id)
        if group is None:
            return Pending.failed(GroupIdNotFound(f"Group {group_id} not found."))
        try:
            group.validate_delete()
        except GroupError as error:
            return Pending.failed(error)
        if group.type != SHARE:
            return self.forget_if_empty(group)
        states = self.share_groups.forget_states(self.share_groups.group(group_id))
        forgotten = self.forget_if_empty(group)
        return after(states, lambda _: forgotten)

    # topics

    def topic_changed(self, topic: str) -> None:
        """A topic was created or has more partitions."""
        self.consumer_groups.topic_changed(topic)
        if "share_groups" in self.__dict__:
            self.share_groups.topic_changed(topic)
        if "streams_groups" in self.__dict__:
            self.streams_groups.topic_changed(topic)

    def topic_deleted(self, topic: str) -> None:
        self.offsets.topic_deleted(topic)
        self.consumer_groups.topic_deleted(topic)
        if "share_groups" in self.__dict__:
            self.share_groups.topic_changed(topic)
        if "streams_groups" in self.__dict__:
            self.streams_groups.topic_changed(topic)


def _require_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("the group id is empty")


def _succeeded(done: Pending[None]) -> bool:
    try:
        done.result()
    except Exception:
        return False
    return True
