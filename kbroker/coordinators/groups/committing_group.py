"""What consumer groups and streams groups have in common beyond epochs: their members commit offsets.

A member commits with its epoch. With one behind its own it commits what it got no later than that (KIP-1251).
"""

from __future__ import annotations

from typing import Generic

from kbroker.coordinators.groups.epoch_group import EpochGroup, M, T
from kbroker.coordinators.groups.errors import (
    GroupError,
    IllegalGeneration,
    StaleMemberEpoch,
    UnsupportedVersion,
)
from kbroker.coordinators.groups.group import CheckPartition
from kbroker.coordinators.groups.store import CommittedOffset

_FIRST_VERSION_WITH_MEMBER_EPOCH = 9


class CommittingGroup(EpochGroup[M, T], Generic[M, T]):
    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        member_epoch: int,
        *,
        api_version: int,
        transactional: bool = False,
    ) -> CheckPartition | None:
        if member_epoch < 0 and self.is_empty:
            return None
        if transactional and member_epoch == -1 and not member_id and group_instance_id is None:
            return None
        member = self.member(member_id)
        if (
            not transactional
            and api_version < _FIRST_VERSION_WITH_MEMBER_EPOCH
            and not self._is_classic(member)
        ):
            raise UnsupportedVersion(
                f"members of {self.type} groups commit from version {_FIRST_VERSION_WITH_MEMBER_EPOCH} on"
            )
        if member_epoch == member.member_epoch:
            return None
        if member_epoch > member.member_epoch:
            raise self._wrong_epoch(member, f"epoch {member_epoch} is newer than {member.member_epoch}")

        def check_partition(topic_id: bytes | None, partition: int) -> None:
            epoch = None if topic_id is None else self._assigned_at(member, topic_id, partition)
            if epoch is None:
                raise self._wrong_epoch(member, f"partition {partition} is not assigned to the member")
            if member_epoch < epoch:
                raise self._wrong_epoch(member, f"epoch {member_epoch} is older than the partition's {epoch}")

        return check_partition

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise self._wrong_epoch(member, f"epoch {member_epoch} is not {member.member_epoch}")

    def validate_offset_delete(self) -> None:
        """Always: what the group reads is refused topic by topic."""

    def offset_retention_start_ms(self, committed: CommittedOffset) -> int | None:
        """From the commit, members or not: the offsets of topics that are read do not expire anyway."""
        return committed.commit_timestamp_ms

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        """A commit is no heartbeat here."""

    # what differs

    def _assigned_at(self, member: M, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which the member got the partition; None when it does not hold it."""
        raise NotImplementedError

    def _is_classic(self, member: M) -> bool:
        """Whether the member speaks the classic protocol."""
        return False

    def _wrong_epoch(self, member: M, problem: str) -> GroupError:
        """The same mistake has the name that the member's protocol knows."""
        return IllegalGeneration(problem) if self._is_classic(member) else StaleMemberEpoch(problem)
