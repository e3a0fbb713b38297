"""Members of the classic protocol inside a consumer group, while the group goes from one protocol to the
other.

They are members like the others: the broker assigns, and their generation is their member epoch. JoinGroup is
the heartbeat that says what they own and takes a step of reconciliation, SyncGroup brings the partitions
assigned, Heartbeat says when to join again. Nobody leads and nothing is parked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from kbroker.coordinators.groups.classic.protocol import (
    NO_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    MemberState,
    Owned,
    owned_partitions,
)
from kbroker.coordinators.groups.consumer.migration import encode_assignment, may_downgrade, metadata_version
from kbroker.coordinators.groups.consumer.settings import MigrationPolicy
from kbroker.coordinators.groups.consumer.snapshot import when_saved
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    GroupError,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from kbroker.coordinators.groups.member_timers import MemberTimer
from kbroker.pending import Pending
from kbroker.protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription, read_subscription
from kbroker.protocol.types import ProtocolError

if TYPE_CHECKING:
    from kbroker.coordinators.groups.consumer.groups import ConsumerGroups

T = TypeVar("T")


class ClassicProtocolMembers:
    def __init__(self, groups: ConsumerGroups, env: GroupEnvironment) -> None:
        self._groups = groups
        self._env = env

    def join(self, group: ConsumerGroup, request: JoinRequest, now_ms: int) -> Pending[JoinResult]:
        try:
            return self._join(group, request, now_ms)
        except GroupError as error:
            if error.member_id is None:
                error.member_id = NO_MEMBER_ID
            raise

    def _join(self, group: ConsumerGroup, request: JoinRequest, now_ms: int) -> Pending[JoinResult]:
        settings = self._groups.settings_for(group.group_id)
        if settings.migration_policy is MigrationPolicy.DISABLED:
            raise InconsistentGroupProtocol(
                f"group {group.group_id} takes no classic members: its migration policy is disabled"
            )
        is_new = request.member_id == NO_MEMBER_ID
        member_id = self._env.new_id() if is_new else request.member_id
        self._groups.check_room(group, member_id, settings)
        if not group.supports_classic_protocols(
            request.protocol_type, [name for name, _ in request.protocols]
        ):
            raise InconsistentGroupProtocol("the group uses none of the member's protocols")
        if is_new and request.group_instance_id is None and request.member_id_required:
            raise MemberIdRequired("join again with this member id", member_id=member_id)
        subscription = _subscription(request)
        member, replaced = _find_or_make_member(group, member_id, is_new, request)

        # Nothing is refused from here on.
        if replaced is not None:
            group.timers.cancel_all((replaced.member_id,))
            group.replace_static(replaced, member)
        target_epoch = group.assignment_epoch
        updated = self._groups.update_member(
            group,
            member,
            _brought_up_to_date(member, request, subscription),
            self._owned(subscription),
            settings,
            now_ms,
        )
        result = JoinResult(member_id, updated.member_epoch, PROTOCOL_TYPE, request.protocols[0][0], "", [])
        if may_downgrade(group, (), settings, self._env.settings.group_max_size):
            # It came in the place of the last member of the consumer protocol.
            stale = group.group_epoch > target_epoch
            return _pending(self._groups.downgrade(group, (), now_ms, rebalance=stale, result=result))
        group.timers.cancel(MemberTimer.JOIN, member_id)
        self._groups.schedule(MemberTimer.SESSION, group, member_id, now_ms + request.session_timeout_ms)
        self._groups.schedule(MemberTimer.SYNC, group, member_id, now_ms + request.rebalance_timeout_ms)
        return _pending(when_saved(self._env.store, group, result))

    def sync(self, group: ConsumerGroup, request: SyncRequest, now_ms: int) -> Pending[SyncResult]:
        member, classic = _classic_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        protocol_name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol_name,
        ):
            raise InconsistentGroupProtocol(f"the member's protocol is {PROTOCOL_TYPE}, {protocol_name}")
        if (
            group.assignment_epoch > member.member_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            self._expect_join(group, member, now_ms)
            raise RebalanceInProgress("there is a newer target: join again")
        group.timers.cancel(MemberTimer.SYNC, member.member_id)
        self._groups.schedule(
            MemberTimer.SESSION, group, member.member_id, now_ms + classic.session_timeout_ms
        )
        assignment = encode_assignment(member.assigned, metadata_version(metadata), self._env.topics)
        return Pending.resolved(SyncResult(request.protocol_type, request.protocol_name, assignment))

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int, now_ms: int
    ) -> None:
        """Raises RebalanceInProgress when a join would bring the member further."""
        member, classic = _classic_member(group, member_id, instance_id, generation_id)
        self._groups.schedule(
            MemberTimer.SESSION, group, member.member_id, now_ms + classic.session_timeout_ms
        )
        if (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
        ):
            self._expect_join(group, member, now_ms)
            raise RebalanceInProgress("join again")

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[LeavingMember], now_ms: int
    ) -> Pending[list[LeaveResult]]:
        results: list[LeaveResult] = []
        members: dict[str, ConsumerGroupMember] = {}
        for member_id, instance_id, _ in leaving:
            error: GroupError | None = None
            try:
                member = _leaving_member(group, member_id, instance_id)
                members[member.member_id] = member
            except GroupError as refused:
                error = refused
            results.append(LeaveResult(member_id, instance_id, error))
        return _pending(self._groups.fence(group, list(members.values()), now_ms, results))

    def _expect_join(self, group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int) -> None:
        deadline_ms = now_ms + member.rebalance_timeout_ms
        self._groups.schedule_if_absent(MemberTimer.JOIN, group, member.member_id, deadline_ms)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Owned:
        return owned_partitions(
            (topic_id, topic.partitions)
            for topic in subscription.owned_partitions
            if (topic_id := self._env.topics.topic_id(topic.topic)) is not None
        )


def _subscription(request: JoinRequest) -> ConsumerProtocolSubscription:
    """All protocols of a consumer carry the same one."""
    try:
        return read_subscription(request.protocols[0][1])
    except ProtocolError as error:
        raise InconsistentGroupProtocol("the embedded consumer protocol is malformed") from error


def _find_or_make_member(
    group: ConsumerGroup, member_id: str, is_new: bool, request: JoinRequest
) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
    """The member as it stands, and the static member in whose place it comes, if any."""
    if request.group_instance_id is None:
        return group.members.get(member_id, ConsumerGroupMember(member_id)), None
    if not is_new:
        return group.known_static_member(request.group_instance_id, member_id), None
    existing = group.static_member(request.group_instance_id)
    if existing is None:
        return ConsumerGroupMember(member_id), None
    return existing.replaced_by(member_id), existing


def _brought_up_to_date(
    member: ConsumerGroupMember, request: JoinRequest, subscription: ConsumerProtocolSubscription
) -> ConsumerGroupMember:
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=ClassicMemberMetadata(request.session_timeout_ms, request.protocols),
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
    """The member of the classic protocol that a request claims to come from."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = group.known_static_member(instance_id, member_id)
    if member.classic is None:
        raise UnknownMemberId(f"member {member_id} uses the consumer protocol")
    if generation_id != member.member_epoch:
        raise IllegalGeneration(
            f"the generation of member {member_id} is {member.member_epoch}, not {generation_id}"
        )
    return member, member.classic


def _leaving_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
    if instance_id is None:
        return group.member(member_id)
    if member_id == NO_MEMBER_ID:  # an administrator removes it
        member = group.static_member(instance_id)
        if member is None:
            raise UnknownMemberId(f"no member has the instance id {instance_id}")
        return member
    return group.known_static_member(instance_id, member_id)


def _pending(result: T | Pending[T]) -> Pending[T]:
    return result if isinstance(result, Pending) else Pending.resolved(result)
