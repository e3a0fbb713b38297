"""The store of share partitions of a catalog in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kbroker.coordinators.shares.state import ShareState, ShareStateChange, merged
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending


class MemoryShareStateStore:
    def __init__(
        self,
        topic_exists: Callable[[bytes], bool] = lambda topic_id: True,
        written: Callable[[], Pending[None]] = lambda: Pending.resolved(None),
    ) -> None:
        """`written`: the result of a write that was just done."""
        self._topic_exists = topic_exists
        self._written = written
        self._states: dict[ShareKey, ShareState] = {}

    def load(self) -> dict[ShareKey, ShareState]:
        self._states = {key: state for key, state in self._states.items() if self._topic_exists(key.topic_id)}
        return dict(self._states)

    def put(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        for key, state in states.items():
            if state is None:
                self._states.pop(key, None)
            else:
                self._states[key] = state
        return self._written()

    def write(self, changes: Mapping[ShareKey, ShareStateChange]) -> Pending[None]:
        for key, change in changes.items():
            state = self._states.get(key)
            if state is not None:
                self._states[key] = merged(state, (change,))
        return Pending.resolved(None)

    def delete_group(self, group_id: str) -> Pending[None]:
        return self.put({key: None for key in self._states if key.group_id == group_id})

    def delete_topic(self, topic_id: bytes) -> Pending[None]:
        return self.put({key: None for key in self._states if key.topic_id == topic_id})

    @property
    def is_empty(self) -> bool:
        return not self._states

    def close(self) -> None:
        pass
