"""Copies of the catalog: what was asked for before, and nothing of what came after."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kbroker.catalog.errors import CatalogError
from kbroker.catalog.memory import MemoryCatalog
from kbroker.catalog.rows import TopicRow
from kbroker.catalog.sqlite.catalog import SqliteCatalog
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.pending import Pending


def offset(number: int) -> CommittedOffset:
    return CommittedOffset(number, -1, "", 0, sequence=number)


def topic(name: str) -> TopicRow:
    return TopicRow(name, name.encode().ljust(16, b"."), 1, 0)


class Loop:
    """Where results of the catalog are brought to."""

    def __init__(self) -> None:
        self._callbacks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def deliver(self, callback: Callable[[], None]) -> None:
        self._callbacks.put(callback)

    def settle(self, *pending: Pending[None]) -> None:
        while not all(each.done for each in pending):
            self._callbacks.get(timeout=30)()
        for each in pending:
            each.result()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    directory = tmp_path / "copy"
    directory.mkdir()
    return directory


def topics_in(directory: Path) -> set[str]:
    catalog = SqliteCatalog.open(directory)
    try:
        return {row.name for row in catalog.snapshot().topics}
    finally:
        catalog.close()


def offsets_in(directory: Path) -> dict[str, int]:
    catalog = SqliteCatalog.open(directory)
    catalog.snapshot()
    store = catalog.group_store()
    try:
        groups = store.load().offsets
        return {group: each.offset for group, found in groups.items() for each in found.values()}
    finally:
        store.close()
        catalog.close()


@pytest.mark.parametrize("started", [False, True])
def test_what_was_asked_for_is_there_and_what_comes_after_is_not(
    tmp_path: Path, copy: Path, loop: Loop, started: bool
) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    if started:
        catalog.start(loop.deliver)
    before = [catalog.create_topic(topic(f"before-{each}"), {}) for each in range(50)]
    copied = catalog.copy(str(copy))
    after = [catalog.create_topic(topic(f"after-{each}"), {}) for each in range(50)]
    loop.settle(*before, copied, *after)
    catalog.close()
    assert topics_in(copy) == {f"before-{each}" for each in range(50)}
    assert len(topics_in(tmp_path)) == 100


def test_what_is_journaled_is_there_and_what_comes_after_is_not(
    tmp_path: Path, copy: Path, loop: Loop
) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    catalog.snapshot()
    store = catalog.group_store()
    store.load()
    catalog.start(loop.deliver)
    partition = TopicPartition("topic", 0)
    store.journal_offsets({"applied": {partition: offset(1)}})
    loop.settle(store.apply_journal())
    store.journal_offsets({"journaled": {partition: offset(2)}})
    copied = catalog.copy(str(copy))
    store.journal_offsets({"journaled": {partition: offset(3)}, "late": {partition: offset(3)}})
    loop.settle(copied, store.apply_journal())
    store.close()
    catalog.close()
    assert offsets_in(copy) == {"applied": 1, "journaled": 2}
    assert offsets_in(tmp_path) == {"applied": 1, "journaled": 3, "late": 3}


def test_what_leaves_the_journal_meanwhile_is_in_the_database_or_in_the_copy_of_the_journal(
    tmp_path: Path, copy: Path, loop: Loop
) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    catalog.snapshot()
    store = catalog.group_store()
    store.load()
    catalog.start(loop.deliver)
    partition = TopicPartition("topic", 0)
    for number in range(30):
        store.journal_offsets({f"group-{number}": {partition: offset(number)}})
        if number == 20:
            applied = store.apply_journal()
            copied = catalog.copy(str(copy))
    loop.settle(applied, copied, store.apply_journal())
    store.close()
    catalog.close()
    assert offsets_in(copy) == {f"group-{number}": number for number in range(21)}


def test_a_copy_that_fails_leaves_the_catalog_at_work(tmp_path: Path, loop: Loop) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    catalog.start(loop.deliver)
    copied = catalog.copy(str(tmp_path / "missing" / "directory"))
    with pytest.raises(CatalogError):
        loop.settle(copied)
    loop.settle(catalog.create_topic(topic("topic"), {}))
    catalog.close()
    assert topics_in(tmp_path) == {"topic"}


def test_the_copy_is_a_database_of_its_own(tmp_path: Path, copy: Path, loop: Loop) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    loop.settle(catalog.create_topic(topic("topic"), {}), catalog.copy(str(copy)))
    catalog.close()
    connection = sqlite3.connect(copy / "catalog.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_there_is_none_of_memory(copy: Path) -> None:
    with pytest.raises(CatalogError, match="in memory"):
        MemoryCatalog().copy(str(copy)).result()
