"""How the state of share partitions is kept: the interface. The catalog implements it.

Invariants: every write is atomic; writes take effect in the order they are called; a returned Pending
settles, on the caller's thread, when the write is durable. Where several brokers share a store, one of them
owns a share partition at a time, and a write of another fails with NotOwner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kbroker.coordinators.shares.state import ShareState, ShareStateChange
from kbroker.pending import Pending


class ShareKey(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int


class NotOwner(Exception):
    """Another broker has the share partition now."""


class ShareStateStore(Protocol):
    def load(self) -> Mapping[ShareKey, ShareState]:
        """All there is after a start."""
        ...

    def put(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        """Replace these states whole; None: delete."""
        ...

    def write(self, changes: Mapping[ShareKey, ShareStateChange]) -> Pending[None]:
        """Change states that are there, each as `state.merged` says. The way of every acknowledgement: often
        done when it returns."""
        ...

    def delete_group(self, group_id: str) -> Pending[None]: ...

    def delete_topic(self, topic_id: bytes) -> Pending[None]: ...

    def close(self) -> None:
        """All writes are done and nothing more comes."""
        ...
