"""The group coordinator's store of a catalog in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kbroker.coordinators.groups.store import (
    CommittedOffset,
    Offsets,
    State,
    StoredGroup,
    StoredGroups,
    TopicPartition,
)
from kbroker.pending import Pending


class MemoryGroupStore:
    journals = False

    def __init__(self, written: Callable[[], Pending[None]] = lambda: Pending.resolved(None)) -> None:
        """`written`: the result of a write that was just done."""
        self._written = written
        self._groups: dict[str, StoredGroup] = {}
        self._offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._pending: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = {}

    def load(self) -> StoredGroups:
        return StoredGroups(
            groups=[StoredGroup(g.group_id, g.type, g.state, dict(g.members)) for g in self._groups.values()],
            offsets={group_id: dict(offsets) for group_id, offsets in self._offsets.items() if offsets},
            pending_offsets={
                producer_id: {group_id: dict(offsets) for group_id, offsets in groups.items() if offsets}
                for producer_id, groups in self._pending.items()
            },
        )

    def save_group(
        self, group_id: str, type: str, state: State, members: Mapping[str, State | None]
    ) -> Pending[None]:
        group = self._groups.get(group_id)
        if group is None or group.type != type:
            group = self._groups[group_id] = StoredGroup(group_id, type, state)
        group.state = state
        for member_id, member in members.items():
            if member is None:
                group.members.pop(member_id, None)
            else:
                group.members[member_id] = member
        return self._written()

    def delete_group(self, group_id: str) -> Pending[None]:
        self._groups.pop(group_id, None)
        self._offsets.pop(group_id, None)
        for groups in self._pending.values():
            groups.pop(group_id, None)
        return self._written()

    def commit_offsets(self, groups: Mapping[str, Offsets]) -> Pending[None]:
        for group_id, offsets in groups.items():
            self._offsets.setdefault(group_id, {}).update(offsets)
        return self._written()

    def journal_offsets(self, groups: Mapping[str, Offsets]) -> None:
        raise NotImplementedError("it is as quick to commit them")

    def apply_journal(self) -> Pending[None]:
        return Pending.resolved(None)

    @property
    def is_empty(self) -> bool:
        return not (self._groups or self._offsets or self._pending)

    def close(self) -> None:
        pass

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        stores = [self._offsets, *self._pending.values()]
        for partition in partitions:
            for store in stores:
                store.get(group_id, {}).pop(partition, None)
        return self._written()

    def add_pending_offsets(self, producer_id: int, group_id: str, offsets: Offsets) -> Pending[None]:
        self._pending.setdefault(producer_id, {}).setdefault(group_id, {}).update(offsets)
        return self._written()

    def end_transaction(self, producer_id: int, *, commit: bool) -> Pending[None]:
        pending = self._pending.pop(producer_id, {})
        if commit:
            for group_id, offsets in pending.items():
                committed = self._offsets.setdefault(group_id, {})
                for partition, offset in offsets.items():
                    if partition not in committed or committed[partition].sequence <= offset.sequence:
                        committed[partition] = offset
        return self._written()
