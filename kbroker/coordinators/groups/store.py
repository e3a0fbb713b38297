"""How the group coordinator keeps its state: the interface, and an implementation that keeps it in memory.

A group is one `state` (and, for types that want it, one state per member): dictionaries of JSON values and
bytes whose meaning only the group's class knows. Committed offsets stand beside them, by group, topic and
partition.

Invariants: every write is atomic; writes take effect in the order they are called; a returned Pending
settles, on the caller's thread, when the write is durable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kbroker.pending import Pending

State = Mapping[str, Any]
NO_TOPIC_ID = bytes(16)


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    """Set by the per-commit retention time of OffsetCommit 2-4; otherwise the broker's retention applies."""
    topic_id: bytes = NO_TOPIC_ID
    sequence: int = 0
    """Grows with every commit: of two for one partition the later counts, whenever its transaction ends."""


Offsets = Mapping[TopicPartition, CommittedOffset]


@dataclass(slots=True)
class StoredGroup:
    group_id: str
    type: str
    state: State
    members: dict[str, State] = field(default_factory=dict)


@dataclass(slots=True)
class StoredGroups:
    """All there is after a start."""

    groups: list[StoredGroup] = field(default_factory=list)
    offsets: dict[str, dict[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    pending_offsets: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = field(default_factory=dict)
    """Offsets of open transactions: by producer id, then group id."""


class GroupStore(Protocol):
    def load(self) -> StoredGroups: ...

    def save_group(
        self, group_id: str, type: str, state: State, members: Mapping[str, State | None]
    ) -> Pending[None]:
        """Replace the group's state, and of its members' states those given (None deletes one).

        Saving a group under another type drops all members stored under the old one.
        """
        ...

    def delete_group(self, group_id: str) -> Pending[None]:
        """Delete the group, its members and its offsets, also those of open transactions."""
        ...

    def commit_offsets(self, groups: Mapping[str, Offsets]) -> Pending[None]:
        """Replace these offsets of these groups, all together."""
        ...

    @property
    def notes(self) -> bool:
        """Whether `note_offsets` is a way, and then the better one."""
        ...

    def note_offsets(self, groups: Mapping[str, Offsets]) -> None:
        """The same, done when it returns; `fold` is to follow sometime. Raises if it could not be done."""
        ...

    def fold(self) -> Pending[None]:
        """Put what was noted to the rest. Until then it costs space and time at the next start."""
        ...

    def close(self) -> None:
        """All writes are done and nothing more comes."""
        ...

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        """Delete committed offsets, and the same partitions' offsets of open transactions."""
        ...

    def add_pending_offsets(self, producer_id: int, group_id: str, offsets: Offsets) -> Pending[None]: ...

    def end_transaction(self, producer_id: int, *, commit: bool) -> Pending[None]:
        """Commit the producer's pending offsets, except where a later commit came first; or drop them."""
        ...


class MemoryGroupStore:
    """Keeps everything in dictionaries: for brokers without a data directory, and for tests."""

    notes = False

    def __init__(self) -> None:
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
        return Pending.resolved(None)

    def delete_group(self, group_id: str) -> Pending[None]:
        self._groups.pop(group_id, None)
        self._offsets.pop(group_id, None)
        for groups in self._pending.values():
            groups.pop(group_id, None)
        return Pending.resolved(None)

    def commit_offsets(self, groups: Mapping[str, Offsets]) -> Pending[None]:
        for group_id, offsets in groups.items():
            self._offsets.setdefault(group_id, {}).update(offsets)
        return Pending.resolved(None)

    def note_offsets(self, groups: Mapping[str, Offsets]) -> None:
        raise NotImplementedError("it is as quick to commit them")

    def fold(self) -> Pending[None]:
        return Pending.resolved(None)

    def close(self) -> None:
        pass

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        stores = [self._offsets, *self._pending.values()]
        for partition in partitions:
            for store in stores:
                store.get(group_id, {}).pop(partition, None)
        return Pending.resolved(None)

    def add_pending_offsets(self, producer_id: int, group_id: str, offsets: Offsets) -> Pending[None]:
        self._pending.setdefault(producer_id, {}).setdefault(group_id, {}).update(offsets)
        return Pending.resolved(None)

    def end_transaction(self, producer_id: int, *, commit: bool) -> Pending[None]:
        pending = self._pending.pop(producer_id, {})
        if commit:
            for group_id, offsets in pending.items():
                committed = self._offsets.setdefault(group_id, {})
                for partition, offset in offsets.items():
                    if partition not in committed or committed[partition].sequence <= offset.sequence:
                        committed[partition] = offset
        return Pending.resolved(None)
