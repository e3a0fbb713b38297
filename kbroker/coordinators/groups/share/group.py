"""A share group (KIP-932): its members and what they are told to read.

    Empty   no members
    Stable  members
    Dead    deleted

Several members may read the same partition, so nobody waits for anybody: a member takes its target with its
next heartbeat. A partition that is not in its target any more it keeps for as long as it holds records of
it, and from then on it acquires none: clients forget what they have fetched ahead of a partition that is
taken from them, and nobody would get those records, nor, soon, those behind them, until their locks run out.

It commits no offsets: how far a group is stands in the states of its share partitions.
"""

from __future__ import annotations

from typing import Protocol

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.environment import GroupEnvironment
from kbroker.coordinators.groups.errors import GroupIdNotFound
from kbroker.coordinators.groups.group import CheckPartition
from kbroker.coordinators.groups.member_epochs import check_member_epoch
from kbroker.coordinators.groups.modern_group import ModernGroup
from kbroker.coordinators.groups.share.member import ShareGroupMember
from kbroker.coordinators.groups.store import CommittedOffset
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending


class Rights(Protocol):
    """Which share partitions members may acquire records of: all, but for those that were withdrawn."""

    def withdraw(self, key: ShareKey, member_id: str) -> bool:
        """The member acquires no more of this share partition; False: it does, since it holds some."""
        ...

    def grant(self, key: ShareKey, member_id: str) -> None: ...

    def forget(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        ...


class ShareGroup(ModernGroup[ShareGroupMember]):
    type = "share"
    protocol_type = "share"
    assignor_name = "simple"

    def __init__(self, group_id: str, env: GroupEnvironment) -> None:
        super().__init__(group_id, env)
        self.initialization_requested = True
        """Whether partitions of subscribed topics may have no state yet."""
        self.initializing: Pending[None] | None = None
        """While they get one."""

    @property
    def state(self) -> str:
        if self._closed:
            return "Dead"
        return "Stable" if self.members else "Empty"

    def member_at(self, member_id: str, member_epoch: int) -> ShareGroupMember:
        """The member, if that is its epoch, or the one before: it may have missed the answer that raised it.

        Epoch 0 is a new start.
        """
        member = self.members.get(member_id) if member_epoch == 0 else self.member(member_id)
        if member is None:
            return ShareGroupMember(member_id)
        check_member_epoch(member, member_epoch)
        return member

    def caught_up(
        self, member: ShareGroupMember, rights: Rights, *, subscription_changed: bool
    ) -> ShareGroupMember:
        """The member with what it is to read now; the same object if it reads that already."""
        epoch = self.assignment_epoch
        on_target = member.member_epoch == epoch and member.assigned == self.target.get(member.member_id, {})
        if on_target and not subscription_changed:  # a new subscription may come before its target
            return member
        assigned = self._assignment(member, rights)
        if member.member_epoch == epoch and member.assigned == assigned:
            return member
        return member.at(epoch, assigned)

    def _assignment(self, member: ShareGroupMember, rights: Rights) -> TopicPartitions:
        """Its target, as far as it is subscribed to that still, and of what it has the partitions that it
        holds records of.
        """
        member_id = member.member_id
        target = self.target.get(member_id, {})
        assigned: dict[bytes, frozenset[int]] = {}
        for topic_id in self.subscriptions.topic_ids_of(member):
            given = target.get(topic_id, frozenset())
            for partition in given:
                rights.grant(ShareKey(self.group_id, topic_id, partition), member_id)
            held = (
                partition
                for partition in member.assigned.get(topic_id, frozenset()) - given
                if not rights.withdraw(ShareKey(self.group_id, topic_id, partition), member_id)
            )
            if partitions := given.union(held):
                assigned[topic_id] = partitions
        return assigned

    def partitions(self) -> list[tuple[bytes, int]]:
        """All that the group reads, by topic id."""
        return [
            (topic_id, partition)
            for topic_id, count in self.subscriptions.partition_counts().items()
            for partition in range(count)
        ]

    # offsets: it has none

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        /,
        *,
        api_version: int,
        transactional: bool = False,
    ) -> CheckPartition | None:
        raise self._no_offsets()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whoever asks finds nothing."""

    def validate_offset_delete(self) -> None:
        raise self._no_offsets()

    def offset_retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return None

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        """Never."""

    def _no_offsets(self) -> GroupIdNotFound:
        return GroupIdNotFound(f"group {self.group_id} is a share group: nobody commits offsets in it")
