"""One member of a consumer group: an immutable value, replaced as a whole when anything about it changes.

`assigned` are the partitions the member owns or has been told to take, each with the member epoch at which it
got it; `pending_revocation` those it has been told to give up and has not yet. Together they are the
partitions nobody else may own.

STABLE                  the member has reached the epoch it is in
UNREVOKED_PARTITIONS    it keeps its epoch until it has given up what is pending revocation
UNRELEASED_PARTITIONS   it is in the target's epoch and waits for partitions that others still hold
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum

from kbroker.coordinators.groups.modern_member import ModernMember

LEAVE_GROUP_MEMBER_EPOCH = -1
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2

PartitionEpochs = Mapping[bytes, Mapping[int, int]]
"""Topic id → partition → the member epoch at which the partition was assigned."""

Owned = Mapping[bytes, Set[int]]
"""Topic id → partitions, as a member reports them."""


class MemberState(Enum):
    STABLE = "STABLE"
    UNREVOKED_PARTITIONS = "UNREVOKED_PARTITIONS"
    UNRELEASED_PARTITIONS = "UNRELEASED_PARTITIONS"


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a member of the classic protocol, inside a consumer group, brought with its JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and embedded subscription, in the order of preference."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember(ModernMember):
    state: MemberState = MemberState.STABLE
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def has_left_for_a_while(self) -> bool:
        """A static member that said it will be back within the session timeout (epoch -2)."""
        return self.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which the member got this partition; None when it does not hold it."""
        for held in (self.assigned, self.pending_revocation):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def holds_only(self, owned: Owned) -> bool:
        """Whether all that the member says it owns is assigned to it."""
        return all(
            topic_id in self.assigned and partitions <= self.assigned[topic_id].keys()
            for topic_id, partitions in owned.items()
        )

    def with_epoch(self, member_epoch: int) -> ConsumerGroupMember:
        return replace(self, member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def left_for_a_while(self) -> ConsumerGroupMember:
        """Its partitions wait for the member that comes back under the same instance id, with commits of any
        epoch allowed.
        """
        return replace(
            self,
            member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
            assigned={
                topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in self.assigned.items()
            },
            pending_revocation={},
        )

    def replaced_by(self, member_id: str) -> ConsumerGroupMember:
        """The static member under its new member id, about to join."""
        return replace(self, member_id=member_id, member_epoch=0, previous_member_epoch=0)


def owned_partitions(topics: Iterable[tuple[bytes, Iterable[int]]]) -> Owned:
    """What a request lists, which may name a topic twice."""
    owned: dict[bytes, set[int]] = {}
    for topic_id, partitions in topics:
        owned.setdefault(topic_id, set()).update(partitions)
    return owned
