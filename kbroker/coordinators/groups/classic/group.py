"""A classic group: members join, one assigns, all sync, until somebody comes, goes or changes its mind.

    from \\ to            PreparingRebalance             CompletingRebalance  Stable         Empty
    Empty                first join                     -                    -              -
    PreparingRebalance   -                              joins complete       -              nobody joined
    CompletingRebalance  join with a change or of a     -                    leader's sync  -
                         new member, leave, expiry,
                         no sync in time
    Stable               the same, join of the leader   -                    -              -
    any of them → Dead   deleted, replaced, closed

The first rebalance out of Empty waits a little for more members (initial_delay).

Invariants: the generation only grows; only a member of the current generation gets its assignment; an
assignment is stored before anyone gets it; at most one JoinGroup and one SyncGroup per member are parked, and
every parked one is answered when its member goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbroker.coordinators.groups.classic.initial_delay import InitialDelay
from kbroker.coordinators.groups.classic.members import ClassicMember
from kbroker.coordinators.groups.classic.protocol import (
    NO_MEMBER_ID,
    JoinedMember,
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from kbroker.coordinators.groups.classic.state import (
    ALLOWED_FROM,
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    ClassicGroupState,
)
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    GroupError,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from kbroker.coordinators.timers import Action
from kbroker.pending import Pending

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member's parked JoinGroup counts: it cannot heartbeat, so nobody sees if it still lives."""


class ClassicGroup(ClassicGroupState):
    def __init__(self, group_id: str, environment: GroupEnvironment, now_ms: int) -> None:
        super().__init__(group_id, now_ms)
        self._environment = environment
        self._timers = environment.timers
        self._initial_delay = InitialDelay(environment.settings.group_initial_rebalance_delay_ms)

    def start(self, now_ms: int) -> None:
        """Go on after a restart: members continue with their next heartbeat, their sessions begin anew."""
        for member in self.members:
            self._expect_heartbeat(member, now_ms)
        if len(self.members) > self._environment.settings.group_max_size:
            self._prepare_rebalance(now_ms)

    def save(self, assignments: dict[str, bytes] | None = None) -> Pending[None]:
        return self._environment.store.save_group(self.group_id, self.type, self.stored(assignments), {})

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        """A member that commits is alive."""
        member = self.members.get(member_id)
        if member is not None and self.state in (STABLE, PREPARING):
            self._expect_heartbeat(member, now_ms)

    # JoinGroup

    def join(self, request: JoinRequest, now_ms: int) -> Pending[JoinResult]:
        answer: Pending[JoinResult] = Pending()
        try:
            self._join(request, answer, now_ms)
        except GroupError as error:
            answer.fail(error)
        self.answers.deliver()
        return answer

    def _join(self, request: JoinRequest, answer: Pending[JoinResult], now_ms: int) -> None:
        if not self._has_room_for(request.member_id):
            self._remove_member(request.member_id)
            self._complete_join_if_all_joined(now_ms)
            raise GroupMaxSizeReached("the group is full", member_id=NO_MEMBER_ID)
        if self.state is DEAD:
            raise CoordinatorNotAvailable(f"the group {self.group_id} is gone")
        if not self._supports(request):
            raise InconsistentGroupProtocol("the members have no protocol in common")
        if request.member_id == NO_MEMBER_ID:
            self._join_new(request, answer, now_ms)
        elif request.member_id in self.members.pending and request.group_instance_id is None:
            self._add_member(request, request.member_id, answer, now_ms)
        else:
            self._join_known(request, answer, now_ms)

    def _has_room_for(self, member_id: str) -> bool:
        max_size = self._environment.settings.group_max_size
        if self.state is PREPARING:
            # Who rejoins late is turned away: the group may be over its size because the limit was lowered.
            member = self.members.get(member_id)
            waits = member is not None and member.awaiting_join is not None
            return waits or self.members.awaiting_join < max_size
        if self.state in (COMPLETING, STABLE):
            return member_id in self.members or len(self.members) < max_size
        return True

    def _supports(self, request: JoinRequest) -> bool:
        if self.state is EMPTY:
            return bool(request.protocol_type and request.protocols)
        return request.protocol_type == self.protocol_type and self.members.any_supported_by_all(
            request.protocols
        )

    def _join_new(self, request: JoinRequest, answer: Pending[JoinResult], now_ms: int) -> None:
        instance_id = request.group_instance_id
        prefix = request.client_id if instance_id is None else instance_id
        new_id = f"{prefix}-{self._environment.new_id()}"
        if instance_id is not None:
            current_id = self.members.static_member_id(instance_id)
            if current_id is not None:
                self._replace_static_member(request, current_id, new_id, answer, now_ms)
                return
        elif request.member_id_required:
            self.members.pending.add(new_id)
            self._schedule_expiry(new_id, now_ms + request.session_timeout_ms)
            self._prolong_initial_delay(now_ms)
            raise MemberIdRequired("join again with this member id", member_id=new_id)
        self._add_member(request, new_id, answer, now_ms)

    def _join_known(self, request: JoinRequest, answer: Pending[JoinResult], now_ms: int) -> None:
        member = self.members.validated(request.member_id, request.group_instance_id)
        if self.state is EMPTY:
            raise UnknownMemberId("the group has no members")
        unchanged = member.protocols == request.protocols
        is_leader = member.member_id == self.members.leader
        # With nothing changed a follower, or one that missed the answer to its join, learns how things are.
        # A leader that joins a stable group wants a rebalance: only it sees new topics and partitions.
        if unchanged and (self.state is COMPLETING or (self.state is STABLE and not is_leader)):
            self.answers.add(answer, self._join_result(member))
            return
        self.members.update(
            member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms
        )
        self.members.park_join(member, answer)
        self._rebalance_or_complete_join(now_ms)

    def _add_member(
        self, request: JoinRequest, member_id: str, answer: Pending[JoinResult], now_ms: int
    ) -> None:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocol_type,
            request.protocols,
            is_new=True,
        )
        if not self.members:
            self.protocol_type = request.protocol_type
        self.members.add(member)
        self.members.park_join(member, answer)
        self._schedule_expiry(member_id, now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._prolong_initial_delay(now_ms)
        self._rebalance_or_complete_join(now_ms)

    def _replace_static_member(
        self, request: JoinRequest, old_id: str, new_id: str, answer: Pending[JoinResult], now_ms: int
    ) -> None:
        old_leader = self.members.leader
        self._timers.cancel(self._session_key(old_id))
        member = self.members.rename_static(old_id, new_id)
        before = (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms)
        self.members.update(
            member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms
        )
        self.members.park_join(member, answer)
        self._expect_heartbeat(member, now_ms)
        if self.state is not STABLE or self.members.select_protocol() != self.protocol_name:
            # In CompletingRebalance the leader may already have assigned to the old member id.
            self._rebalance_or_complete_join(now_ms)
            return

        def stored(saved: Pending[None]) -> None:
            if failure := _failure(saved):
                self.members.answer_join(member, _not_stored(failure, member_id=NO_MEMBER_ID))
                if self.members.get(new_id) is member:
                    self._timers.cancel(self._session_key(new_id))
                    self.members.update(member, *before)
                    self.members.rename_static(new_id, old_id)
                    self._expect_heartbeat(member, self._timers.now_ms)
            elif member.awaiting_join is answer and self.state is STABLE:
                result = self._join_result(member)
                if not request.can_skip_assignment:
                    # Before KIP-814: shown the old leader's id, the member does not think it leads.
                    result.leader = old_leader or ""
                    result.members = []
                else:
                    result.skip_assignment = result.leader == new_id
                self.members.answer_join(member, result)
            self.answers.deliver()

        self.save().then(stored)

    # SyncGroup

    def sync(self, request: SyncRequest, now_ms: int) -> Pending[SyncResult]:
        self._timers.advance(now_ms)
        answer: Pending[SyncResult] = Pending()
        try:
            self._sync(request, answer)
        except GroupError as error:
            answer.fail(error)
        self.answers.deliver()
        return answer

    def _sync(self, request: SyncRequest, answer: Pending[SyncResult]) -> None:
        if self.state is DEAD:
            raise CoordinatorNotAvailable(f"the group {self.group_id} is gone")
        member = self.members.validated(request.member_id, request.group_instance_id)
        if request.generation_id != self.generation_id:
            raise IllegalGeneration(f"the generation is {self.generation_id}, not {request.generation_id}")
        if _differ(request.protocol_type, self.protocol_type) or _differ(
            request.protocol_name, self.protocol_name
        ):
            raise InconsistentGroupProtocol(f"the group uses {self.protocol_type}, {self.protocol_name}")
        if self.state is PREPARING:
            raise RebalanceInProgress("join again")
        if self.state is STABLE:
            self._sync_received(member)
            self.answers.add(answer, SyncResult(self.protocol_type, self.protocol_name, member.assignment))
            return
        self.members.park_sync(member, answer)
        self._sync_received(member)
        if member.member_id == self.members.leader:
            self._assign(request.assignments)

    def _sync_received(self, member: ClassicMember) -> None:
        self.members.pending_sync.discard(member.member_id)
        if not self.members.pending_sync:
            self._timers.cancel(self._sync_key)

    def _assign(self, assignments: dict[str, bytes]) -> None:
        generation_id = self.generation_id

        def stored(saved: Pending[None]) -> None:
            # While it was stored the group may have begun another rebalance: then nobody needs this one.
            if self.state is COMPLETING and self.generation_id == generation_id:
                if failure := _failure(saved):
                    self._reset_assignment(_not_stored(failure))
                    self._prepare_rebalance(self._timers.now_ms)
                else:
                    self._become_stable(assignments)
            self.answers.deliver()

        self.save(assignments).then(stored)

    def _become_stable(self, assignments: dict[str, bytes]) -> None:
        now_ms = self._timers.now_ms
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
            result = SyncResult(self.protocol_type, self.protocol_name, member.assignment)
            if self.members.answer_sync(member, result):
                self._expect_heartbeat(member, now_ms)
        self.transition(STABLE, now_ms)

    def _reset_assignment(self, error: GroupError) -> None:
        for member in self.members:
            member.assignment = b""
            if self.members.answer_sync(member, error):
                self._expect_heartbeat(member, self._timers.now_ms)

    # Heartbeat and LeaveGroup

    def heartbeat(
        self, member_id: str, group_instance_id: str | None, generation_id: int, now_ms: int
    ) -> None:
        if self.state is DEAD:
            raise CoordinatorNotAvailable(f"the group {self.group_id} is gone")
        member = self.members.validated(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGeneration(f"the generation is {self.generation_id}, not {generation_id}")
        self._expect_heartbeat(member, now_ms)
        if self.state is PREPARING:
            raise RebalanceInProgress("join again")

    def leave(self, leaving: Sequence[LeavingMember], now_ms: int) -> list[LeaveResult]:
        if self.state is DEAD:
            raise CoordinatorNotAvailable(f"the group {self.group_id} is gone")
        results = []
        for member_id, instance_id, _ in leaving:
            error: GroupError | None = None
            try:
                self._leave(member_id, instance_id)
            except GroupError as failure:
                error = failure
            results.append(LeaveResult(member_id, instance_id, error))
        if any(result.error is None for result in results):
            if self.state in (STABLE, COMPLETING):
                self._prepare_rebalance(now_ms)
            else:
                self._complete_join_if_all_joined(now_ms)
        self.answers.deliver()
        return results

    def _leave(self, member_id: str, instance_id: str | None) -> None:
        if member_id == NO_MEMBER_ID:
            # An administrator removes a static member by its instance id alone.
            current = None if instance_id is None else self.members.static_member_id(instance_id)
            if current is None:
                raise UnknownMemberId(f"no member has the instance id {instance_id}")
            member_id = current
        elif member_id not in self.members.pending:
            self.members.validated(member_id, instance_id)
        self._remove_member(member_id)

    def _remove_member(self, member_id: str) -> None:
        """Members that wait for an answer hear that they are no members: who is still alive joins again."""
        member = self.members.get(member_id)
        if member is not None:
            self.members.answer_join(member, UnknownMemberId("no longer a member", member_id=NO_MEMBER_ID))
            self.members.answer_sync(member, UnknownMemberId("no longer a member"))
        self.members.remove(member_id)
        self._timers.cancel(self._session_key(member_id))

    # Rebalance

    def rebalance(self, now_ms: int) -> None:
        """Ask the members of a stable group to join again."""
        self._prepare_rebalance(now_ms)
        self.answers.deliver()

    def _rebalance_or_complete_join(self, now_ms: int) -> None:
        if self.state in ALLOWED_FROM[PREPARING]:
            self._prepare_rebalance(now_ms)
        else:
            self._complete_join_if_all_joined(now_ms)

    def _prepare_rebalance(self, now_ms: int) -> None:
        if self.state is COMPLETING:
            self._reset_assignment(RebalanceInProgress("join again"))
        self.members.pending_sync.clear()
        self._timers.cancel(self._sync_key)
        initial = self.state is EMPTY
        self.transition(PREPARING, now_ms)
        if initial:
            deadline_ms = self._initial_delay.begin(now_ms, self.members.rebalance_timeout_ms)
            self._at(self._join_key, deadline_ms, self._end_initial_delay)
        elif self.members.all_joined:
            self._complete_join(now_ms)
        else:
            self._schedule_join_end(now_ms)

    def _schedule_join_end(self, now_ms: int) -> None:
        self._at(self._join_key, now_ms + self.members.rebalance_timeout_ms, self._complete_join)

    def _complete_join_if_all_joined(self, now_ms: int) -> None:
        if self.state is PREPARING and self.previous_state is not EMPTY and self.members.all_joined:
            self._complete_join(now_ms)

    def _prolong_initial_delay(self, now_ms: int) -> None:
        if self.state is PREPARING and self.previous_state is EMPTY:
            deadline_ms = self._initial_delay.member_came(now_ms)
            if deadline_ms is not None:
                self._at(self._join_key, deadline_ms, self._end_initial_delay)

    def _end_initial_delay(self, now_ms: int) -> None:
        deadline_ms = self._initial_delay.deadline_after(now_ms)
        if deadline_ms is None:
            self._complete_join(now_ms)
        else:
            self._at(self._join_key, deadline_ms, self._end_initial_delay)

    def _complete_join(self, now_ms: int) -> None:
        self._timers.cancel(self._join_key)
        for member in self.members:
            if member.awaiting_join is None and member.group_instance_id is None:
                self._remove_member(member.member_id)
        if self.members and not self.members.elect_joined_leader():
            # Only static members, and none of them has joined: their sessions decide.
            self._schedule_join_end(now_ms)
            return
        self.next_generation(now_ms)
        self._environment.rebalances[self.type] += 1
        if not self.members:
            self.save()
            return
        for member in self.members:
            self.members.answer_join(member, self._join_result(member))
            self._expect_heartbeat(member, now_ms)
            member.is_new = False
            self.members.pending_sync.add(member.member_id)
        self._at(self._sync_key, now_ms + self.members.rebalance_timeout_ms, self._expire_syncs)

    def _join_result(self, member: ClassicMember) -> JoinResult:
        leader = self.members.leader or ""
        members = []
        if member.member_id == leader:
            members = [
                JoinedMember(m.member_id, m.group_instance_id, m.metadata(self.protocol_name))
                for m in self.members
            ]
        return JoinResult(
            member.member_id, self.generation_id, self.protocol_type, self.protocol_name, leader, members
        )

    # Time

    def _at(self, key: tuple[str, ...], deadline_ms: int, action: Action) -> None:
        def run(now_ms: int) -> None:
            action(now_ms)
            self.answers.deliver()

        self._timers.schedule(key, deadline_ms, run)

    def _expect_heartbeat(self, member: ClassicMember, now_ms: int) -> None:
        self._schedule_expiry(member.member_id, now_ms + member.session_timeout_ms)

    def _schedule_expiry(self, member_id: str, deadline_ms: int) -> None:
        self._timers.schedule(
            self._session_key(member_id), deadline_ms, lambda now_ms: self._expire(member_id, now_ms)
        )

    def _expire(self, member_id: str, now_ms: int) -> None:
        member = self.members.get(member_id)
        if member is not None and member.has_satisfied_heartbeat:
            return
        self._remove_member(member_id)
        if member is not None and self.state in (STABLE, COMPLETING):
            self._prepare_rebalance(now_ms)
        elif self.state is PREPARING and self.members.all_joined:
            self._complete_join(now_ms)
        self.answers.deliver()

    def _expire_syncs(self, now_ms: int) -> None:
        """Members that have not synced within the rebalance timeout are out."""
        if self.members.pending_sync:
            for member_id in list(self.members.pending_sync):
                self._remove_member(member_id)
            self._prepare_rebalance(now_ms)

    def close(self, reason: GroupError) -> None:
        """The group is deleted or replaced, or the coordinator stops: whoever waits hears why."""
        for member in self.members:
            self.members.answer_join(member, reason)
            self.members.answer_sync(member, reason)
            self._timers.cancel(self._session_key(member.member_id))
        for member_id in self.members.pending:
            self._timers.cancel(self._session_key(member_id))
        self._timers.cancel(self._join_key)
        self._timers.cancel(self._sync_key)
        self.transition(DEAD, self._timers.now_ms)
        self.answers.deliver()

    @property
    def _join_key(self) -> tuple[str, ...]:
        return ("join", self.group_id)

    @property
    def _sync_key(self) -> tuple[str, ...]:
        return ("sync", self.group_id)

    def _session_key(self, member_id: str) -> tuple[str, ...]:
        return ("session", self.group_id, member_id)


def _differ(given: str | None, current: str | None) -> bool:
    return given is not None and current is not None and given != current


def _failure(saved: Pending[None]) -> Exception | None:
    try:
        saved.result()
    except Exception as error:
        return error
    return None


def _not_stored(failure: Exception, member_id: str | None = None) -> CoordinatorNotAvailable:
    return CoordinatorNotAvailable(f"the group could not be stored: {failure}", member_id=member_id)
