"""What a classic group is at one moment: its state, generation, protocol, members; and who may do what.

Empty                no members (offsets may live on)
PreparingRebalance   members join; their JoinGroups are parked
CompletingRebalance  a generation exists; SyncGroups are parked until the leader brings the assignment
Stable               everybody has an assignment
Dead                 deleted, replaced, or the coordinator has closed
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from kbroker.coordinators.groups.answers import Answers
from kbroker.coordinators.groups.classic.members import ClassicMember, ClassicMembers
from kbroker.coordinators.groups.classic.protocol import (
    NO_MEMBER_ID,
    GroupDescription,
    MemberDescription,
)
from kbroker.coordinators.groups.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from kbroker.coordinators.groups.store import CommittedOffset, State
from kbroker.protocol.codec import decode
from kbroker.protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription


class ClassicState(StrEnum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicState
ALLOWED_FROM = {
    EMPTY: (PREPARING,),
    PREPARING: (EMPTY, COMPLETING, STABLE),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
    DEAD: (EMPTY, PREPARING, COMPLETING, STABLE, DEAD),
}


class ClassicGroupState:
    type = "classic"

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_since_ms = now_ms
        self.answers = Answers()
        self.members = ClassicMembers(self.answers)
        self._subscribed: set[str] | None = None
        """The topics all members subscribe to together; None where the group does not know."""

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        if self._subscribed is None:
            return self.uses_consumer_protocol
        return topic in self._subscribed

    def describe(self) -> GroupDescription:
        stable = self.state is STABLE
        members = [
            MemberDescription(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.metadata(self.protocol_name) if stable else b"",
                member.assignment,
            )
            for member in self.members
        ]
        protocol_name = self.protocol_name or "" if stable else ""
        return GroupDescription(self.group_id, self.state, self.protocol_type or "", protocol_name, members)

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        api_version: int,
        transactional: bool,
    ) -> None:
        """Who may commit: anyone while there are no members, then members of this generation."""
        if self.state is DEAD:
            raise CoordinatorNotAvailable(f"the group {self.group_id} is gone")
        if generation_id < 0 and self.state is EMPTY:
            return
        if generation_id >= 0 or member_id != NO_MEMBER_ID or group_instance_id is not None:
            self.members.validated(member_id, group_instance_id)
            if generation_id != self.generation_id:
                raise IllegalGeneration(f"the generation is {self.generation_id}, not {generation_id}")
        elif not transactional:
            raise UnknownMemberId("only members may commit while the group has any")
        if not transactional and self.state is COMPLETING:
            raise RebalanceInProgress("the group has no assignment yet")

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if self.state is DEAD:
            raise GroupIdNotFound(f"the group {self.group_id} is gone")

    def validate_offset_delete(self) -> None:
        if self.state is DEAD:
            raise GroupIdNotFound(f"the group {self.group_id} is gone")
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise NonEmptyGroup(f"the group {self.group_id} has members")

    def validate_delete(self) -> None:
        if self.state is DEAD:
            raise GroupIdNotFound(f"the group {self.group_id} is gone")
        if self.state is not EMPTY:
            raise NonEmptyGroup(f"the group {self.group_id} has members")

    def offset_retention_start_ms(self, committed: CommittedOffset) -> int | None:
        """When the retention period of this offset began; None while it cannot expire."""
        if self.protocol_type is None:
            return committed.commit_timestamp_ms
        if self.state is EMPTY:
            return self.state_since_ms
        if self.uses_consumer_protocol and self._subscribed is not None and self.state is STABLE:
            return committed.commit_timestamp_ms
        return None

    def transition(self, state: ClassicState, now_ms: int) -> None:
        if self.state not in ALLOWED_FROM[state]:
            raise RuntimeError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def next_generation(self, now_ms: int) -> None:
        """Of the members there are now: their protocol is chosen; without members the group is empty."""
        self.generation_id += 1
        self.protocol_name = self.members.select_protocol() if self.members else None
        self._subscribed = self._find_subscribed()
        self.transition(COMPLETING if self.members else EMPTY, now_ms)

    def stored(self, assignments: dict[str, bytes] | None = None) -> dict[str, Any]:
        """What is kept of the group: with the given assignments, or with those the members have."""
        members = []
        for member in self.members:
            stored = member.stored()
            if assignments is not None:
                stored["assignment"] = assignments.get(member.member_id, b"")
            members.append(stored)
        return {
            "generation_id": self.generation_id,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol_name,
            "leader": self.members.leader,
            "state_since_ms": self.state_since_ms,
            "members": members,
        }

    def restore(self, state: State) -> None:
        self.generation_id = state["generation_id"]
        self.protocol_type = state["protocol_type"]
        self.protocol_name = state["protocol_name"]
        self.state_since_ms = state["state_since_ms"]
        for stored in state["members"]:
            self.members.add(ClassicMember.from_stored(stored))
        if self.members:
            self.state = STABLE
            self.members.leader = state["leader"]
        self._subscribed = self._find_subscribed()

    def _find_subscribed(self) -> set[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return set()
        if self.protocol_name is None:
            return None
        try:
            return set().union(*(_subscribed_topics(m.metadata(self.protocol_name)) for m in self.members))
        except ValueError:
            return None


def _subscribed_topics(metadata: bytes) -> list[str]:
    # All versions begin like version 0, also those yet unknown and those that clients get wrong further on.
    subscription, _ = decode(ConsumerProtocolSubscription, 0, memoryview(metadata), 2)
    return subscription.topics
