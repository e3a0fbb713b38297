"""One member of a classic group, and the set of members a group has.

Invariants of ClassicMembers: every group instance id belongs to exactly one member; `leader` is a member
unless there is none; `awaiting_join` counts the members with a parked JoinGroup; an id handed out with
MEMBER_ID_REQUIRED is in `pending` until its owner joins, leaves or times out, and is no member meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kbroker.coordinators.groups.answers import Answers
from kbroker.coordinators.groups.classic.protocol import JoinResult, Protocols, SyncResult
from kbroker.coordinators.groups.errors import (
    FencedInstanceId,
    GroupError,
    RebalanceInProgress,
    UnknownMemberId,
)
from kbroker.pending import Pending


@dataclass(slots=True, eq=False)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """It has not been part of a generation yet."""
    awaiting_join: Pending[JoinResult] | None = None
    awaiting_sync: Pending[SyncResult] | None = None

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Who waits for an answer cannot heartbeat. A new member may be gone: it is not exempt."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def stored(self) -> dict[str, Any]:
        return {
            "member_id": self.member_id,
            "group_instance_id": self.group_instance_id,
            "client_id": self.client_id,
            "client_host": self.client_host,
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "protocol_type": self.protocol_type,
            "protocols": [[name, metadata] for name, metadata in self.protocols],
            "assignment": self.assignment,
        }

    @classmethod
    def from_stored(cls, state: dict[str, Any]) -> ClassicMember:
        protocols = tuple((name, metadata) for name, metadata in state["protocols"])
        return cls(**{**state, "protocols": protocols})


class ClassicMembers:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._by_id: dict[str, ClassicMember] = {}
        self._static: dict[str, str] = {}
        self._support: Counter[str] = Counter()
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent their SyncGroup yet."""
        self.leader: str | None = None
        self.awaiting_join = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(list(self._by_id.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def get(self, member_id: str) -> ClassicMember | None:
        return self._by_id.get(member_id)

    def static_member_id(self, group_instance_id: str) -> str | None:
        return self._static.get(group_instance_id)

    def validated(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member that a request claims to come from."""
        if group_instance_id is not None:
            current = self._static.get(group_instance_id)
            if current is None:
                raise UnknownMemberId(f"no member has the instance id {group_instance_id}")
            if current != member_id:
                raise FencedInstanceId(f"the instance id {group_instance_id} belongs to another member")
        member = self._by_id.get(member_id)
        if member is None:
            raise UnknownMemberId(f"the group has no member {member_id}")
        return member

    def add(self, member: ClassicMember) -> None:
        self._by_id[member.member_id] = member
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        self._support.update(_names(member.protocols))
        self.pending.discard(member.member_id)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        member = self._by_id.pop(member_id, None)
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)
        if member is None:
            return
        self._support.subtract(_names(member.protocols))
        if member.awaiting_join is not None:
            self.awaiting_join -= 1
        if member.group_instance_id is not None:
            self._static.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self._by_id), None)

    def update(
        self, member: ClassicMember, protocols: Protocols, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        self._support.subtract(_names(member.protocols))
        self._support.update(_names(protocols))
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def rename_static(self, old_id: str, new_id: str) -> ClassicMember:
        """A static member goes on under a new member id; what the old one waits for is fenced."""
        member = self._by_id.pop(old_id)
        self.answer_join(member, FencedInstanceId("another member took this instance id", member_id=old_id))
        self.answer_sync(member, FencedInstanceId("another member took this instance id"))
        member.member_id = new_id
        member.is_new = False
        self._by_id[new_id] = member
        assert member.group_instance_id is not None
        self._static[member.group_instance_id] = new_id
        self.pending_sync.discard(old_id)
        if self.leader == old_id:
            self.leader = new_id
        return member

    def park_join(self, member: ClassicMember, answer: Pending[JoinResult]) -> None:
        self.answer_join(member, RebalanceInProgress("another JoinGroup of this member took its place"))
        member.awaiting_join = answer
        self.awaiting_join += 1

    def park_sync(self, member: ClassicMember, answer: Pending[SyncResult]) -> None:
        self.answer_sync(member, RebalanceInProgress("another SyncGroup of this member took its place"))
        member.awaiting_sync = answer
        self.pending_sync.discard(member.member_id)

    def answer_join(self, member: ClassicMember, result: JoinResult | GroupError) -> None:
        """Answer the member's parked JoinGroup, if there is one."""
        if member.awaiting_join is not None:
            self._answers.add(member.awaiting_join, result)
            member.awaiting_join = None
            self.awaiting_join -= 1

    def answer_sync(self, member: ClassicMember, result: SyncResult | GroupError) -> bool:
        """Answer the member's parked SyncGroup; False if there is none."""
        if member.awaiting_sync is None:
            return False
        self._answers.add(member.awaiting_sync, result)
        member.awaiting_sync = None
        return True

    @property
    def all_joined(self) -> bool:
        return self.awaiting_join == len(self._by_id) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest any member allows."""
        return max((member.rebalance_timeout_ms for member in self._by_id.values()), default=0)

    def any_supported_by_all(self, protocols: Protocols) -> bool:
        return any(self._support[name] == len(self._by_id) for name, _ in protocols)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined, else take the first member that did. False if nobody joined."""
        if self.leader is not None and self._by_id[self.leader].awaiting_join is not None:
            return True
        for member in self._by_id.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    def select_protocol(self) -> str:
        """Of the protocols that all support, the one that most members like best."""
        size = len(self._by_id)
        candidates = {name for name, count in self._support.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self._by_id.values())
        return votes.most_common(1)[0][0]


def _names(protocols: Protocols) -> set[str]:
    """A protocol that a member names twice has one vote all the same."""
    return {name for name, _ in protocols}
