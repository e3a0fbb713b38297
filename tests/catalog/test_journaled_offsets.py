"""Offsets that are journaled first and applied later: the same as if each had been written at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kbroker.catalog.errors import CatalogError, CatalogFull
from kbroker.catalog.sqlite.file_names import OFFSET_JOURNALS
from kbroker.catalog.sqlite.groups import SqliteGroupStore
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from tests.catalog.journaled import JournaledStoreMachine, OpenedStore
from tests.catalog.small_disk import fill_disk, make_room

GROUPS = st.sampled_from(["a", "b"])
PARTITIONS = st.sampled_from([TopicPartition("t", number) for number in range(3)])
Where = dict[str, set[TopicPartition]]
SOMEWHERE = st.dictionaries(GROUPS, st.sets(PARTITIONS, min_size=1), min_size=1)
SHARES = st.floats(0, 0.999)


def offset(value: int) -> CommittedOffset:
    return CommittedOffset(value, -1, "n" * 9000, 1, None, bytes(16), value)  # more than a page


class Store(OpenedStore):
    names = OFFSET_JOURNALS

    def __init__(self, directory: Path, *, journals: bool = True) -> None:
        super().__init__(directory)
        self.store = SqliteGroupStore(self.database, self.journal, journals=journals, stored=True)
        self.loaded = self.store.load().offsets

    def stop(self) -> None:
        self.store.apply_journal().result()
        self.store.close()
        self.database.close()


class JournaledOffsets(JournaledStoreMachine):
    opened: Store

    def __init__(self) -> None:
        self.expected: dict[tuple[str, TopicPartition], CommittedOffset] = {}
        self.value = 0
        super().__init__()

    def open(self) -> None:
        self.opened = Store(self.path)
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
    def journal(self, where: Where) -> None:
        groups = self.some(where)
        assert self.opened.store.journals
        self.opened.store.journal_offsets(groups)
        for group, offsets in groups.items():
            for partition, committed in offsets.items():
                self.expected[group, partition] = committed

    @rule(where=SOMEWHERE, share=SHARES)
    def journal_without_room(self, where: Where, share: float) -> None:
        self.opened.files.share = share
        with pytest.raises(CatalogFull):
            self.opened.store.journal_offsets(self.some(where))
        assert self.opened.store.journals
        self.opened.files.share = None

    @rule(where=SOMEWHERE, share=SHARES)
    def crash_within_an_entry(self, where: Where, share: float) -> None:
        self.opened.files.share = share
        self.opened.files.truncates = False
        with pytest.raises(CatalogError):
            self.opened.store.journal_offsets(self.some(where))
        assert not self.opened.store.journals
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
    def apply(self) -> None:
        self.done(self.opened.store.apply_journal())

    @invariant()
    def the_journal_is_empty_once_it_is_applied(self) -> None:
        if not self.opened.store._offsets.lags:
            assert not self.opened.journal.size_bytes


JournaledOffsets.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestJournaledOffsets = JournaledOffsets.TestCase


def test_what_could_not_be_applied_is_made_up_for_before_a_later_write(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    partition = TopicPartition("t", 0)
    opened.store.journal_offsets({"a": {partition: offset(1)}})
    fill_disk(opened.database)
    failed = opened.store.apply_journal()
    try:
        failed.result()
    except CatalogError:
        pass
    else:
        raise AssertionError("there was room after all")
    make_room(opened.database)
    opened.store.delete_offsets("a", [partition]).result()
    opened.store.apply_journal().result()
    assert opened.read("SELECT * FROM group_offsets") == []
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {}
    again.crash()


def test_a_store_that_does_not_journal_still_reads_the_journal(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.journal_offsets({"a": {TopicPartition("t", 0): offset(1)}})
    opened.crash()
    again = Store(tmp_path, journals=False)
    assert again.loaded["a"][TopicPartition("t", 0)].offset == 1
    assert not again.store.journals
    assert not again.journal.size_bytes
    again.stop()
