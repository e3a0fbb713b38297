"""What goes into a classic group and what comes out: plain values, free of wire versions.

A version's peculiarity that changes behaviour is a named field (`member_id_required`, `can_skip_assignment`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kbroker.coordinators.groups.errors import GroupError

NO_MEMBER_ID = ""
NO_GENERATION = -1

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols a member supports, the preferred one first, each with the member's metadata."""


@dataclass(slots=True)
class JoinRequest:
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    member_id_required: bool = True
    """KIP-394, JoinGroup 4 and up: a new dynamic member first gets its id, then joins with it."""
    can_skip_assignment: bool = True
    """KIP-814, JoinGroup 9: a static leader that comes back may be told not to run the assignor."""
    reason: str | None = None


class JoinedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class JoinResult:
    member_id: str
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    members: list[JoinedMember]
    """Everybody, for the leader; nobody, for the others."""
    skip_assignment: bool = False


@dataclass(slots=True)
class SyncRequest:
    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


@dataclass(slots=True)
class SyncResult:
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


class LeavingMember(NamedTuple):
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveResult(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error: GroupError | None


class MemberDescription(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: list[MemberDescription]
