"""The states of share partitions in use: replaced by administrators while others work with them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kbroker.catalog.memory_shares import MemoryShareStateStore
from kbroker.coordinators.shares.state import ShareState, ShareStateChange
from kbroker.coordinators.shares.states import ShareStates
from kbroker.coordinators.shares.store import NotOwner, ShareKey
from kbroker.pending import Pending

TOPIC = bytes(15) + b"\x01"
KEY, OTHER = ShareKey("g", TOPIC, 0), ShareKey("g", TOPIC, 1)


class SlowStore(MemoryShareStateStore):
    """Whole states are stored when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Mapping[ShareKey, ShareState | None], Pending[None]]] = []

    def put(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        result: Pending[None] = Pending()
        self.waiting.append((states, result))
        return result

    def finish(self, error: Exception | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for states, result in waiting:
            if error is None:
                super().put(states).then(result.follow)
            else:
                result.fail(error)


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def states(store: SlowStore) -> ShareStates:
    states = ShareStates(store)
    states.initialize("g", [KEY[1:], OTHER[1:]])
    store.finish()
    return states


def test_a_state_that_is_set_shows_once_it_is_stored(states: ShareStates, store: SlowStore) -> None:
    told: list[ShareKey] = []
    states.on_replaced = told.append
    replaced = states.replace({KEY: ShareState(5)})
    assert (states.get(KEY), told) == (ShareState(), [])
    store.finish()
    replaced.result()
    assert (states.get(KEY), told) == (ShareState(5), [KEY])


def test_a_state_is_set_even_if_who_asked_goes_away(states: ShareStates, store: SlowStore) -> None:
    states.replace({KEY: ShareState(5)}).abandon()
    store.finish()
    assert states.get(KEY) == ShareState(5)
    states.write({KEY: ShareStateChange(6)}).result()


def test_what_worked_with_the_old_state_cannot_write_into_the_new_one(
    states: ShareStates, store: SlowStore
) -> None:
    states.attach(KEY, lambda: ShareState(3))
    states.replace({KEY: ShareState(5)})
    with pytest.raises(NotOwner):
        states.write({KEY: ShareStateChange(4)}).result()
    states.write({OTHER: ShareStateChange(4)}).result()
    store.finish()
    assert states.get(KEY) == ShareState(5)
    assert store.load() == {KEY: ShareState(5), OTHER: ShareState(4)}


def test_who_keeps_the_state_as_it_could_not_be_replaced_writes_again(
    states: ShareStates, store: SlowStore
) -> None:
    states.attach(KEY, lambda: ShareState(3))
    replaced = states.replace({KEY: ShareState(5)})
    store.finish(OSError("no room"))
    assert not replaced.succeeded
    assert states.get(KEY) == ShareState(3)
    states.write({KEY: ShareStateChange(4)}).result()


def test_a_partition_that_is_being_set_is_not_initialized_beside_that(
    states: ShareStates, store: SlowStore
) -> None:
    new = ShareKey("g", TOPIC, 2)
    states.replace({new: ShareState(5)})
    initialized = states.initialize("g", [KEY[1:], new[1:]])
    assert len(store.waiting) == 1
    store.finish()
    initialized.result()
    assert states.get(new) == ShareState(5)


def test_a_partition_that_could_not_be_set_is_initialized(states: ShareStates, store: SlowStore) -> None:
    new = ShareKey("g", TOPIC, 2)
    states.replace({new: ShareState(5)})
    initialized = states.initialize("g", [new[1:]])
    store.finish(OSError("no room"))
    store.finish()
    initialized.result()
    assert states.get(new) == ShareState()


def test_a_fetch_does_not_decide_where_a_partition_begins_that_is_set_or_gone(
    states: ShareStates, store: SlowStore
) -> None:
    states.replace({KEY: ShareState(5), OTHER: None})
    with pytest.raises(NotOwner):
        states.decide(KEY, 0).result()
    store.finish()
    with pytest.raises(NotOwner):
        states.decide(OTHER, 0).result()
    assert states.initialized("g") == {KEY[1:]}


def test_states_of_groups_and_topics_go(states: ShareStates, store: SlowStore) -> None:
    another = ShareKey("h", TOPIC, 0)
    states.initialize("h", [another[1:]])
    store.finish()
    told: list[ShareKey] = []
    states.on_replaced = told.append
    deleted = states.delete_group("g")
    store.finish()
    deleted.result()
    assert told == [KEY, OTHER]
    assert [states.get(key) for key in (KEY, another)] == [None, ShareState()]
    deleted = states.delete_topic(TOPIC)
    store.finish()
    deleted.result()
    assert states.get(another) is None
    states.delete_topic(TOPIC).result()
    states.delete_group("g").result()
