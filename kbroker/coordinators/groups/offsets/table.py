"""The committed offsets of all groups, and those of open transactions, in memory.

Invariants: of several commits of one partition the one with the highest sequence is kept, in whatever order
they come to count (a transaction's offsets count when it commits, by the time they were sent); no empty
dictionaries stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from kbroker.coordinators.groups.store import CommittedOffset, Offsets, StoredGroups, TopicPartition

GroupOffsets = dict[TopicPartition, CommittedOffset]


class OffsetFollower(Protocol):
    """Who is told of every change of committed offsets, once it shows."""

    def offsets_committed(self, group_id: str, offsets: Offsets) -> None: ...

    def offsets_deleted(self, group_id: str, partitions: Collection[TopicPartition]) -> None: ...


class OffsetTable:
    def __init__(self) -> None:
        self.follower: OffsetFollower | None = None
        self._committed: dict[str, GroupOffsets] = {}
        self._pending: dict[int, dict[str, GroupOffsets]] = {}
        self._open_transactions: dict[str, set[int]] = {}

    def load(self, stored: StoredGroups) -> int:
        """Take over what was stored; returns the highest sequence."""
        sequences = [0]
        for group_id, offsets in stored.offsets.items():
            self.commit(group_id, offsets)
            sequences += [committed.sequence for committed in offsets.values()]
        for producer_id, groups in stored.pending_offsets.items():
            for group_id, offsets in groups.items():
                self.add_pending(producer_id, group_id, offsets)
                sequences += [committed.sequence for committed in offsets.values()]
        return max(sequences)

    def group_ids(self) -> set[str]:
        """Groups with offsets, also with none but those of open transactions."""
        return {*self._committed, *self._open_transactions}

    def topics(self) -> set[str]:
        """Topics with offsets, committed or pending."""
        return {
            partition.topic
            for group_id in self.group_ids()
            for partition in self.partitions_where(group_id, lambda _: True)
        }

    def of_group(self, group_id: str) -> Offsets:
        return self._committed.get(group_id, {})

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        return self._committed.get(group_id, {}).get(partition)

    def commit(self, group_id: str, offsets: Offsets) -> None:
        committed = self._committed.setdefault(group_id, {})
        for partition, offset in offsets.items():
            current = committed.get(partition)
            if current is None or current.sequence <= offset.sequence:
                committed[partition] = offset
        if self.follower is not None:
            taken = {partition: new for partition, new in offsets.items() if committed[partition] is new}
            self.follower.offsets_committed(group_id, taken)

    def delete(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        """Forget these partitions' offsets, committed or pending."""
        if committed := self._committed.get(group_id):
            gone = [partition for partition in partitions if committed.pop(partition, None) is not None]
            if self.follower is not None:
                self.follower.offsets_deleted(group_id, gone)
            if not committed:
                del self._committed[group_id]
        for pending in self._pending_of(group_id):
            for partition in partitions:
                pending.pop(partition, None)

    def delete_group(self, group_id: str) -> None:
        gone = self._committed.pop(group_id, {})
        if self.follower is not None:
            self.follower.offsets_deleted(group_id, gone.keys())
        for producer_id in self._open_transactions.pop(group_id, ()):
            self._pending[producer_id].pop(group_id, None)

    def partitions_where(
        self, group_id: str, condition: Callable[[TopicPartition], bool]
    ) -> set[TopicPartition]:
        """The partitions with an offset, committed or pending, that fulfil the condition."""
        found = {partition for partition in self.of_group(group_id) if condition(partition)}
        for pending in self._pending_of(group_id):
            found.update(partition for partition in pending if condition(partition))
        return found

    # transactions

    def add_pending(self, producer_id: int, group_id: str, offsets: Offsets) -> None:
        self._pending.setdefault(producer_id, {}).setdefault(group_id, {}).update(offsets)
        self._open_transactions.setdefault(group_id, set()).add(producer_id)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            transactions = self._open_transactions[group_id]
            transactions.discard(producer_id)
            if not transactions:
                del self._open_transactions[group_id]
            if commit and offsets:
                self.commit(group_id, offsets)

    def has_transaction(self, group_id: str) -> bool:
        return group_id in self._open_transactions

    def has_pending(self, group_id: str, partition: TopicPartition) -> bool:
        return any(partition in pending for pending in self._pending_of(group_id))

    def _pending_of(self, group_id: str) -> Iterator[GroupOffsets]:
        for producer_id in self._open_transactions.get(group_id, ()):
            yield self._pending[producer_id].get(group_id, {})
