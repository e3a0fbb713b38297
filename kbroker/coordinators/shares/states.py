"""The states of all share partitions: the one way to what is stored of them.

A partition is *initialized* for a group when it has a state here, be its start offset undecided. A share
partition that is in use attaches: from then on it is the one that knows its state, and writes its changes.

Invariants: what is told here is stored; a write that fails has changed nothing. While a state is being
replaced, whoever still works with the old one cannot write, and nobody gives the partition a first state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import suppress

from kbroker.coordinators.shares.state import ShareState, ShareStateChange
from kbroker.coordinators.shares.store import NotOwner, ShareKey, ShareStateStore
from kbroker.pending import Pending

StateNow = Callable[[], ShareState]


class ShareStates:
    def __init__(self, store: ShareStateStore) -> None:
        self._store = store
        self._groups: dict[str, dict[tuple[bytes, int], ShareState]] = {}
        self._attached: dict[ShareKey, StateNow] = {}
        self._replacing: dict[ShareKey, Pending[None]] = {}
        self.on_replaced: Callable[[ShareKey], None] | None = None
        """Called when a state was set or deleted from outside: what was made of the old one counts no more.
        By then it is detached."""
        for key, state in store.load().items():
            self._remember(key, state)

    # what there is

    def get(self, key: ShareKey) -> ShareState | None:
        attached = self._attached.get(key)
        return self._groups.get(key.group_id, {}).get(key[1:]) if attached is None else attached()

    def initialized(self, group_id: str) -> Collection[tuple[bytes, int]]:
        """By topic id and partition."""
        return self._groups.get(group_id, {}).keys()

    def groups(self) -> Set[str]:
        """The ids of the groups that have any."""
        return self._groups.keys()

    # share partitions

    def attach(self, key: ShareKey, state_now: StateNow) -> None:
        self._attached[key] = state_now

    def detach(self, key: ShareKey) -> None:
        """Nothing is in flight or settling any more."""
        state_now = self._attached.pop(key)
        self._remember(key, state_now())

    def write(self, changes: Mapping[ShareKey, ShareStateChange]) -> Pending[None]:
        """What attached share partitions have done. NotOwner: a state is being replaced."""
        if self._replacing and not self._replacing.keys().isdisjoint(changes):
            return _replaced()
        return self._store.write(changes)

    def is_being_replaced(self, key: ShareKey) -> bool:
        """Whether a write of its changes would be refused."""
        return key in self._replacing

    # groups and administrators

    def initialize(self, group_id: str, partitions: Collection[tuple[bytes, int]]) -> Pending[None]:
        """Those that are not yet; where they begin is decided by the first fetch."""
        keys = [ShareKey(group_id, *each) for each in partitions] if self._replacing else []
        replacement = next((self._replacing[key] for key in keys if key in self._replacing), None)
        if replacement is not None:
            initialized: Pending[None] = Pending()
            replacement.then(lambda _: self.initialize(group_id, partitions).then(initialized.follow))
            return initialized
        known = self._groups.get(group_id, {})
        missing = {ShareKey(group_id, *each): ShareState() for each in partitions if each not in known}
        return self._put(missing) if missing else Pending.resolved(None)

    def decide(self, key: ShareKey, start_offset: int) -> Pending[None]:
        """The first fetch found out where the partition begins for its group. NotOwner: somebody else did."""
        if key in self._replacing or key[1:] not in self.initialized(key.group_id):
            return _replaced()
        return self._put({key: ShareState(start_offset)})

    def replace(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        """None: delete."""
        return self._replaced(states.keys(), self._stored(states))

    def delete_group(self, group_id: str) -> Pending[None]:
        keys = [ShareKey(group_id, *each) for each in self.initialized(group_id)]
        return self._forgotten(keys, self._store.delete_group(group_id)) if keys else Pending.resolved(None)

    def delete_topic(self, topic_id: bytes) -> Pending[None]:
        keys = [key for key in self._keys() if key.topic_id == topic_id]
        return self._forgotten(keys, self._store.delete_topic(topic_id)) if keys else Pending.resolved(None)

    def close(self) -> None:
        self._store.close()

    # internals

    def _keys(self) -> Iterator[ShareKey]:
        for group_id, partitions in self._groups.items():
            for each in partitions:
                yield ShareKey(group_id, *each)

    def _put(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        return _kept(self._stored(states))

    def _stored(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        def stored(done: Pending[None]) -> None:
            if done.succeeded:
                for key, state in states.items():
                    self._remember(key, state)

        written = self._store.put(states)
        written.then(stored)
        return written

    def _forgotten(self, keys: list[ShareKey], deleted: Pending[None]) -> Pending[None]:
        def stored(done: Pending[None]) -> None:
            if done.succeeded:
                for key in keys:
                    self._remember(key, None)

        deleted.then(stored)
        return self._replaced(keys, deleted)

    def _replaced(self, keys: Collection[ShareKey], replacement: Pending[None]) -> Pending[None]:
        def stored(done: Pending[None]) -> None:
            for key in keys:
                if self._replacing.get(key) is replacement:
                    del self._replacing[key]
            if done.succeeded:
                self._tell(keys)

        self._replacing.update(dict.fromkeys(keys, replacement))
        replacement.then(stored)
        return _kept(replacement)

    def _tell(self, keys: Collection[ShareKey]) -> None:
        for key in keys:
            self._attached.pop(key, None)
            if self.on_replaced is not None:
                self.on_replaced(key)

    def _remember(self, key: ShareKey, state: ShareState | None) -> None:
        if state is not None:
            self._groups.setdefault(key.group_id, {})[key[1:]] = state
            return
        partitions = self._groups.get(key.group_id, {})
        with suppress(KeyError):
            del partitions[key[1:]]
        if not partitions:
            self._groups.pop(key.group_id, None)


def _kept(stored: Pending[None]) -> Pending[None]:
    """The same for who asked and may go away: what is to be done here then is done all the same."""
    result: Pending[None] = Pending()
    stored.then(result.follow)
    return result


def _replaced() -> Pending[None]:
    return Pending.failed(NotOwner("the state of the share partition is another one now"))
