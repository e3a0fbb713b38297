"""How the group coordinator keeps its state: the interface. The catalog implements it.

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
    def journals(self) -> bool:
        """Whether `journal_offsets` is a way, and then the better one."""
        ...

    def journal_offsets(self, groups: Mapping[str, Offsets]) -> None:
        """The same, done when it returns; `apply_journal` is to follow. Raises if it could not be done."""
        ...

    def apply_journal(self) -> Pending[None]:
        """Put what was journaled to the rest. Until then it costs space and time at the next start."""
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
