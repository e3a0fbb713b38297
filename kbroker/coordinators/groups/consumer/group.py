"""A consumer group (KIP-848): its members, the target they move to, and who holds which partition.

    Empty        no members
    Assigning    the target is older than the group epoch
    Reconciling  not all members have reached the target
    Stable       all have
    Dead         deleted, or replaced by a classic group

Invariants:
- A partition has at most one holder: the member that has it assigned or pending revocation. `put` refuses a
  second one.
- Each member with an instance id is in `static_members` under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.committing_group import CommittingGroup
from kbroker.coordinators.groups.consumer.member import ConsumerGroupMember, PartitionEpochs
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import FencedInstanceId, UnknownMemberId
from kbroker.coordinators.groups.modern_group import ModernGroup


class ConsumerGroup(ModernGroup[ConsumerGroupMember], CommittingGroup[ConsumerGroupMember, TopicPartitions]):
    type = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str, env: GroupEnvironment) -> None:
        super().__init__(group_id, env)
        self.static_members: dict[str, str] = {}
        self._holders: dict[bytes, dict[int, str]] = {}
        self._assignors: Counter[str] = Counter()
        self._classic_members = 0
        self._classic_protocols: Counter[str] = Counter()
        self._reconciled = 0

    # what it is

    @property
    def state(self) -> str:
        if self._closed:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if self._reconciled == len(self.members) else "Reconciling"

    @property
    def classic_member_count(self) -> int:
        return self._classic_members

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def known_static_member(self, instance_id: str, member_id: str) -> ConsumerGroupMember:
        """The member with this instance id, if it is the one that asks."""
        member = self.static_member(instance_id)
        if member is None:
            raise UnknownMemberId(f"no member has the instance id {instance_id}")
        if member.member_id != member_id:
            raise FencedInstanceId(
                f"the instance id {instance_id} belongs to {member.member_id} now, not to {member_id}"
            )
        return member

    def preferred_assignor(self) -> str | None:
        """The one that most members name."""
        return self._assignors.most_common(1)[0][0] if self._assignors else None

    def is_held_by_another(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        return self._holders.get(topic_id, {}).get(partition, member_id) != member_id

    def supports_classic_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a classic member with these protocols has one in common with all classic members."""
        if protocol_type != self.protocol_type:
            return False
        if self.is_empty:
            return bool(names)
        return any(self._classic_protocols[name] == self._classic_members for name in names)

    def waits_for_others(self, member: ConsumerGroupMember) -> bool:
        """Whether a partition of the member's target is still held by another."""
        return any(
            self.is_held_by_another(member.member_id, topic_id, partition)
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    # how it changes

    def put(self, member: ConsumerGroupMember) -> None:
        old = self.members.get(member.member_id)
        if old is member:
            return
        self._release(old)
        self._hold(member.member_id, member.assigned)
        self._hold(member.member_id, member.pending_revocation)
        super().put(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        old = self.members[member_id]
        self._release(old)
        super().remove(member_id)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def replace_static(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> None:
        """Another member id for the same instance: it takes over target and partitions."""
        target = self.target.get(old.member_id, {})
        self.remove(old.member_id)
        self.target[new.member_id] = target
        self.put(new)

    def restrict_regex(self, regex: str, may_see: Callable[[str], bool]) -> None:
        """A regular expression finds what the member may see who brings it first."""
        if self.subscriptions.restrict(regex, may_see):
            self.metadata_refresh_requested = True

    def set_assignment_epoch(self, assignment_epoch: int) -> None:
        super().set_assignment_epoch(assignment_epoch)
        self._reconciled = sum(member.is_reconciled_to(assignment_epoch) for member in self.members.values())

    # offsets

    def _assigned_at(self, member: ConsumerGroupMember, topic_id: bytes, partition: int) -> int | None:
        return member.assignment_epoch(topic_id, partition)

    def _is_classic(self, member: ConsumerGroupMember) -> bool:
        return member.uses_classic_protocol

    # internals

    def _count(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        super()._count(old, new)
        for member, step in ((old, -1), (new, 1)):
            if member is None:
                continue
            self._reconciled += step * member.is_reconciled_to(self.assignment_epoch)
            if member.server_assignor is not None:
                _add(self._assignors, member.server_assignor, step)
            if member.classic is not None:
                self._classic_members += step
                for name, _ in member.classic.protocols:
                    _add(self._classic_protocols, name, step)

    def _hold(self, member_id: str, partitions: PartitionEpochs) -> None:
        for topic_id, held in partitions.items():
            holders = self._holders.setdefault(topic_id, {})
            for partition in held:
                if holders.setdefault(partition, member_id) != member_id:
                    raise AssertionError(f"partition {partition} of {topic_id.hex()} has a second holder")

    def _release(self, member: ConsumerGroupMember | None) -> None:
        if member is None:
            return
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, held in partitions.items():
                holders = self._holders.get(topic_id, {})
                for partition in held:
                    holders.pop(partition, None)
                if not holders:
                    self._holders.pop(topic_id, None)


def _add(counts: Counter[str], key: str, step: int) -> None:
    counts[key] += step
    if not counts[key]:
        del counts[key]
