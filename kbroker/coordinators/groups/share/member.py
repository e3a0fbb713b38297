"""One member of a share group: what it was told to read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.modern_member import ModernMember


@dataclass(frozen=True, slots=True)
class ShareGroupMember(ModernMember):
    assigned: TopicPartitions = field(default_factory=dict)

    def at(self, member_epoch: int, assigned: TopicPartitions) -> ShareGroupMember:
        """There is nothing to give up first: others may have the same partitions."""
        same = member_epoch == self.member_epoch
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.previous_member_epoch if same else self.member_epoch,
            assigned=assigned,
        )
