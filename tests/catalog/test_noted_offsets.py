"""Offsets that are noted first and folded later: the same as if each had been written at once."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kbroker.catalog.errors import CatalogError, CatalogFull
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.file_names import OFFSET_JOURNALS
from kbroker.catalog.sqlite.groups import SqliteGroupStore
from kbroker.catalog.sqlite.journal import Journal
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from tests.catalog.small_disk import crash, fill_disk, make_room

GROUPS = st.sampled_from(["a", "b"])
PARTITIONS = st.sampled_from([TopicPartition("t", number) for number in range(3)])
Where = dict[str, set[TopicPartition]]
SOMEWHERE = st.dictionaries(GROUPS, st.sets(PARTITIONS, min_size=1), min_size=1)
SHARES = st.floats(0, 0.999)


def offset(value: int) -> CommittedOffset:
    return CommittedOffset(value, -1, "n" * 9000, 1, None, bytes(16), value)  # more than a page


class Store:
    """A store in a directory, opened as a start of the broker does."""

    def __init__(self, directory: Path) -> None:
        self.database = Database(directory / "catalog.sqlite")
        self.journal = Journal(directory, OFFSET_JOURNALS)
        self.store = SqliteGroupStore(self.database, self.journal)
        self.loaded = self.store.load().offsets

    def read(self, query: str) -> list[tuple[object, ...]]:
        return self.database.read(lambda connection: connection.execute(query).fetchall())

    def tear(self, share: float) -> object:
        """Of what is appended from now on only this share gets into the file, then its disk is full."""
        write = os.pwrite
        left = [share]

        def part(fd: int, data: bytes, position: int) -> int:
            if not left:
                raise OSError(errno.ENOSPC, "no space left")
            return write(fd, data[: int(len(data) * left.pop())], position)

        return patch("os.pwrite", part)

    def crash(self) -> None:
        """The process is gone: nothing is folded, nothing is closed in order."""
        self.journal.close()
        crash(self.database)


def _fail(*_: object) -> None:
    raise OSError(errno.EIO, "input/output error")


class NotedOffsets(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.expected: dict[tuple[str, TopicPartition], CommittedOffset] = {}
        self.value = 0
        self.full = False
        self.open()

    def open(self) -> None:
        self.opened = Store(Path(self.directory.name))
        loaded = {
            (group_id, partition): committed
            for group_id, offsets in self.opened.loaded.items()
            for partition, committed in offsets.items()
        }
        assert loaded == self.expected

    def next(self) -> CommittedOffset:
        self.value += 1
        return offset(self.value)

    def some(self, where: Where) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        return {
            group: {partition: self.next() for partition in partitions} for group, partitions in where.items()
        }

    @rule(where=SOMEWHERE)
    def note(self, where: Where) -> None:
        groups = self.some(where)
        assert self.opened.store.notes
        self.opened.store.note_offsets(groups)
        for group, offsets in groups.items():
            for partition, committed in offsets.items():
                self.expected[group, partition] = committed

    @rule(where=SOMEWHERE, share=SHARES)
    def note_without_room(self, where: Where, share: float) -> None:
        with self.opened.tear(share), pytest.raises(CatalogFull):
            self.opened.store.note_offsets(self.some(where))

    @rule(where=SOMEWHERE, share=SHARES)
    def crash_within_a_note(self, where: Where, share: float) -> None:
        with self.opened.tear(share), patch("os.ftruncate", _fail), pytest.raises(CatalogError):
            self.opened.store.note_offsets(self.some(where))
        assert not self.opened.store.notes
        self.crash()

    @rule(group=GROUPS, partition=PARTITIONS)
    def commit(self, group: str, partition: TopicPartition) -> None:
        committed = self.next()
        if self.done(self.opened.store.commit_offsets({group: {partition: committed}})):
            self.expected[group, partition] = committed

    @rule(group=GROUPS, partition=PARTITIONS)
    def delete(self, group: str, partition: TopicPartition) -> None:
        if self.done(self.opened.store.delete_offsets(group, [partition])):
            self.expected.pop((group, partition), None)

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        if self.done(self.opened.store.delete_group(group)):
            self.expected = {key: value for key, value in self.expected.items() if key[0] != group}

    @rule()
    def fold(self) -> None:
        self.done(self.opened.store.fold())

    @rule()
    def disk_fills(self) -> None:
        if not self.full:
            fill_disk(self.opened.database)
            self.full = True

    @rule()
    def disk_has_room(self) -> None:
        if self.full:
            make_room(self.opened.database)
            self.full = False

    @rule()
    def crash(self) -> None:
        self.disk_has_room()
        self.opened.crash()
        self.open()

    @rule()
    def restart(self) -> None:
        self.disk_has_room()
        self.opened.store.fold().result()
        self.opened.store.close()
        self.opened.database.close()
        assert not any((Path(self.directory.name) / name).stat().st_size for name in OFFSET_JOURNALS)
        self.open()

    def done(self, pending: object) -> bool:
        try:
            pending.result()  # type: ignore[attr-defined]
        except CatalogFull:
            assert self.full
            return False
        return True

    @invariant()
    def the_journal_does_not_outgrow_what_is_not_folded(self) -> None:
        if not self.opened.store._noted and not self.opened.store._unfolded:
            assert not any(file.size for file in self.opened.journal._files)

    def teardown(self) -> None:
        self.opened.crash()
        self.directory.cleanup()


NotedOffsets.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestNotedOffsets = NotedOffsets.TestCase


def test_a_fold_that_failed_is_made_up_for_before_a_later_write(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    partition = TopicPartition("t", 0)
    opened.store.note_offsets({"a": {partition: offset(1)}})
    fill_disk(opened.database)
    failed = opened.store.fold()
    try:
        failed.result()
    except CatalogError:
        pass
    else:
        raise AssertionError("there was room after all")
    make_room(opened.database)
    opened.store.delete_offsets("a", [partition]).result()
    opened.store.fold().result()
    assert opened.read("SELECT * FROM group_offsets") == []
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {}
    again.crash()


def test_without_notes_the_journal_is_read_but_not_written(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.note_offsets({"a": {TopicPartition("t", 0): offset(1)}})
    opened.crash()
    database = Database(tmp_path / "catalog.sqlite")
    journal = Journal(tmp_path, OFFSET_JOURNALS)
    store = SqliteGroupStore(database, journal, notes=False)
    assert store.load().offsets["a"][TopicPartition("t", 0)].offset == 1
    assert not store.notes
    assert not any(file.size for file in journal._files)
    store.close()
    database.close()
