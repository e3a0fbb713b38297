"""What the group coordinator's store of every catalog keeps."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

import pytest

from kbroker.coordinators.groups.store import CommittedOffset, StoredGroup, TopicPartition

from .conftest import Reopen

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("päyments", 7)
STATE = {
    "generation_id": 3,
    "leader": None,
    "members": [{"metadata": b"\0\xff", "base64": "no bytes", "x": {}}],
}


def offset(number: int, sequence: int = 1, **fields) -> CommittedOffset:
    return CommittedOffset(
        number, 5, "meta ☃", 1_000, topic_id=b"0123456789abcdef", sequence=sequence, **fields
    )


class Reopening:
    """A store that is closed and opened again, as by a restart, before each load."""

    def __init__(self, reopen: Reopen) -> None:
        self._reopen = reopen
        self._store = reopen().group_store()

    def load(self):
        self._store.close()
        self._store = self._reopen().group_store()
        return self._store.load()

    def __getattr__(self, name):
        return getattr(self._store, name)


@pytest.fixture
def store(reopen: Reopen) -> Iterator[Reopening]:
    store = Reopening(reopen)
    yield store
    store.close()


def test_an_empty_store_has_nothing(store):
    stored = store.load()
    assert (stored.groups, stored.offsets, stored.pending_offsets) == ([], {}, {})


def test_a_group_comes_back_with_its_members(store):
    store.save_group("g", "consumer", STATE, {"a": {"epoch": 1, "id": b"\1"}, "b": {"epoch": 2}}).result()
    store.save_group("g", "consumer", STATE, {"a": None, "b": {"epoch": 3}, "c": {"epoch": 1}}).result()
    assert store.load().groups == [
        StoredGroup("g", "consumer", STATE, {"b": {"epoch": 3}, "c": {"epoch": 1}})
    ]


def test_another_type_drops_the_members(store):
    store.save_group("g", "consumer", {}, {"a": {}}).result()
    store.save_group("g", "classic", STATE, {}).result()
    assert store.load().groups == [StoredGroup("g", "classic", STATE)]


def test_offsets_come_back(store):
    store.commit_offsets({"g": {ORDERS: offset(1), PAYMENTS: offset(2, expire_timestamp_ms=9)}}).result()
    store.commit_offsets({"g": {ORDERS: offset(3)}}).result()
    store.commit_offsets({"h": {ORDERS: offset(4)}}).result()
    assert store.load().offsets == {
        "g": {ORDERS: offset(3), PAYMENTS: offset(2, expire_timestamp_ms=9)},
        "h": {ORDERS: offset(4)},
    }


def test_deleted_offsets_are_gone_also_from_transactions(store):
    store.commit_offsets({"g": {ORDERS: offset(1), PAYMENTS: offset(2)}}).result()
    store.add_pending_offsets(1, "g", {ORDERS: offset(3), PAYMENTS: offset(4)}).result()
    store.delete_offsets("g", {ORDERS}).result()
    stored = store.load()
    assert stored.offsets == {"g": {PAYMENTS: offset(2)}}
    assert stored.pending_offsets == {1: {"g": {PAYMENTS: offset(4)}}}


def test_a_deleted_group_takes_everything_with_it(store):
    for group in "gh":
        store.save_group(group, "consumer", {}, {"a": {}}).result()
        store.commit_offsets({group: {ORDERS: offset(1)}}).result()
        store.add_pending_offsets(1, group, {ORDERS: offset(3)}).result()
    store.delete_group("g").result()
    stored = store.load()
    assert stored.groups == [StoredGroup("h", "consumer", {}, {"a": {}})]
    assert stored.offsets == {"h": {ORDERS: offset(1)}}
    assert stored.pending_offsets == {1: {"h": {ORDERS: offset(3)}}}


def test_a_committed_transaction_moves_its_offsets_unless_a_later_commit_came_first(store):
    store.add_pending_offsets(1, "g", {ORDERS: offset(10, 1), PAYMENTS: offset(20, 1)}).result()
    store.add_pending_offsets(2, "g", {ORDERS: offset(30, 2)}).result()
    store.commit_offsets({"g": {ORDERS: offset(11, 3)}}).result()
    store.end_transaction(1, commit=True).result()
    stored = store.load()
    assert stored.offsets == {"g": {ORDERS: offset(11, 3), PAYMENTS: offset(20, 1)}}
    assert stored.pending_offsets == {2: {"g": {ORDERS: offset(30, 2)}}}


def test_an_aborted_transaction_leaves_nothing(store):
    store.add_pending_offsets(1, "g", {ORDERS: offset(10)}).result()
    store.end_transaction(1, commit=False).result()
    stored = store.load()
    assert (stored.offsets, stored.pending_offsets) == ({}, {})


def test_a_burst_of_commits_is_few_transactions(catalog):
    delivered: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    store = catalog.group_store()
    catalog.start(delivered.put)
    before = catalog.commits
    writes = [store.commit_offsets({f"g{number}": {ORDERS: offset(number)}}) for number in range(1_000)]
    while not all(write.done for write in writes):
        delivered.get(timeout=30)()
    assert catalog.commits - before < 200
    store.close()
