"""States of share partitions whose changes are journaled first and merged later: as if each were at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.sqlite.file_names import SHARE_JOURNALS
from kbroker.catalog.sqlite.inspection import journal_problems
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.shares import SqliteShareStateStore
from kbroker.catalog.sqlite.stored import shares_are_stored
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange, merged
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending
from tests.catalog.journaled import JournaledStoreMachine, OpenedStore
from tests.catalog.manual_timers import ManualTimers

TOPICS = (bytes(15) + b"\x01", bytes(15) + b"\x02")
GROUPS = ("a" + "n" * 3000, "b" + "n" * 3000)  # so that a disk fills
ALL_KEYS = [ShareKey(*key) for key in product(GROUPS, TOPICS, range(2))]
KEY, OTHER = ALL_KEYS[0], ALL_KEYS[1]
KEYS = st.lists(st.sampled_from(ALL_KEYS), min_size=1, max_size=4, unique=True)
STATES = st.sampled_from([RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED])
RUNS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 5), STATES, st.integers(1, 3)), max_size=40
)  # the gap before it, its length, state, count


def placed(start_offset: int, drawn: list[tuple[int, int, RecordState, int]]) -> tuple[Run, ...]:
    runs = []
    for gap, length, state, count in drawn:
        runs.append(Run(start_offset + gap, start_offset + gap + length - 1, state, count))
        start_offset += gap + length
    return merged(ShareState(), [ShareStateChange(-1, runs)]).runs  # neighbours joined


class Store(OpenedStore):
    names = SHARE_JOURNALS

    def __init__(self, directory: Path, *, journals: bool = True) -> None:
        super().__init__(directory)
        self.database.write(_make_topics).result()
        self.timers = ManualTimers()
        self.store = SqliteShareStateStore(
            self.database,
            self.journal,
            self.timers if journals else None,
            stored=shares_are_stored(self.database),
        )
        self.loaded = self.store.load()

    def write(self, key: ShareKey, change: ShareStateChange) -> Pending[None]:
        return self.store.write({key: change})

    def stop(self) -> None:
        self.store.close()
        self.database.close()


def _make_topics(connection: sqlite3.Connection) -> None:
    rows = [(topic_id.hex(), topic_id) for topic_id in TOPICS]
    connection.executemany("INSERT OR IGNORE INTO topics VALUES (?, ?, 2, 0)", rows)


Expected = Mapping[ShareKey, ShareState]


def after_puts(states: Expected, puts: Mapping[ShareKey, ShareState | None]) -> Expected:
    both = {**states, **puts}
    return {key: state for key, state in both.items() if state is not None}


def after_changes(states: Expected, changes: Mapping[ShareKey, ShareStateChange]) -> Expected:
    return {key: merged(state, (changes[key],)) if key in changes else state for key, state in states.items()}


class JournaledShares(JournaledStoreMachine):
    opened: Store

    def __init__(self) -> None:
        self.expected: Expected = {}
        self.start_offset = 0  # of all; it does not go back
        super().__init__()

    def open(self) -> None:
        self.opened = Store(self.path)
        assert self.opened.loaded == self.expected

    def changes(self, keys: list[ShareKey], data: st.DataObject) -> dict[ShareKey, ShareStateChange]:
        self.start_offset += data.draw(st.integers(0, 3))
        start = self.start_offset
        return {key: ShareStateChange(start, placed(start, data.draw(RUNS))) for key in keys}

    def states(self, keys: list[ShareKey], data: st.DataObject) -> dict[ShareKey, ShareState | None]:
        changes = self.changes(keys, data)
        return {key: None if data.draw(st.booleans()) else ShareState(*changes[key]) for key in keys}

    @rule(keys=KEYS, data=st.data())
    def write(self, keys: list[ShareKey], data: st.DataObject) -> None:
        changes = self.changes(keys, data)
        written = self.opened.store.write(changes)
        assert written.done
        written.result()
        self.expected = after_changes(self.expected, changes)

    @rule(keys=KEYS, data=st.data())
    def put(self, keys: list[ShareKey], data: st.DataObject) -> None:
        states = self.states(keys, data)
        if self.done(self.opened.store.put(states)):
            self.expected = after_puts(self.expected, states)

    @rule(keys=KEYS, data=st.data(), apply=st.booleans(), crash=st.booleans())
    def write_while_others_are_put(
        self, keys: list[ShareKey], data: st.DataObject, apply: bool, crash: bool
    ) -> None:
        self.opened.database.held = True
        states = self.states(keys, data)
        put = self.opened.store.put(states)
        before, self.expected = self.expected, after_puts(self.expected, states)
        changes = self.changes(data.draw(KEYS), data)
        self.opened.store.write(changes).result()
        if apply:
            self.opened.timers.fire()
        if crash:
            self.expected = after_changes(before, changes)
            self.opened.database.held = False
            self.opened.database.waiting.clear()
            self.crash()
            return
        self.opened.database.finish()
        stored = self.expected if self.done(put) else before
        self.expected = after_changes(stored, changes)

    @rule(number=st.integers(0, 1))
    def delete_group(self, number: int) -> None:
        if self.done(self.opened.store.delete_group(GROUPS[number])):
            gone = GROUPS[number]
            self.expected = {key: state for key, state in self.expected.items() if key.group_id != gone}

    @rule(number=st.integers(0, 1))
    def delete_topic(self, number: int) -> None:
        if self.done(self.opened.store.delete_topic(TOPICS[number])):
            gone = TOPICS[number]
            self.expected = {key: state for key, state in self.expected.items() if key.topic_id != gone}

    @rule(keys=KEYS, data=st.data(), share=st.floats(0, 0.999))
    def journal_without_room(self, keys: list[ShareKey], data: st.DataObject, share: float) -> None:
        self.opened.files.share = share
        with pytest.raises(CatalogFull):
            self.opened.store.write(self.changes(keys, data)).result()
        self.opened.files.share = None

    @rule(keys=KEYS, data=st.data(), share=st.floats(0, 0.999))
    def crash_within_an_entry(self, keys: list[ShareKey], data: st.DataObject, share: float) -> None:
        self.opened.files.share, self.opened.files.truncates = share, False
        assert not self.opened.store.write(self.changes(keys, data)).succeeded
        self.crash()

    @rule()
    def merge(self) -> None:
        self.opened.timers.fire()

    @invariant()
    def what_is_journaled_is_to_be_merged(self) -> None:
        if self.opened.journal.size_bytes:
            assert self.opened.timers.due_later


JournaledShares.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestJournaledShares = JournaledShares.TestCase


def test_many_changes_are_one_transaction_of_the_database(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0), OTHER: ShareState(0)}).result()
    before = opened.database.commits
    for number in range(100):
        opened.write((KEY, OTHER)[number % 2], ShareStateChange(number)).result()
    assert opened.journal.size_bytes > 0
    opened.timers.fire()
    assert opened.database.commits - before == 1
    assert opened.read("SELECT start_offset FROM share_states ORDER BY 1") == [(98,), (99,)]
    assert opened.journal.size_bytes == 0
    assert opened.timers.due_later == []
    opened.stop()


def test_many_changes_are_one_transaction_after_a_crash_too(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0)}).result()
    for number in range(100):
        opened.write(KEY, ShareStateChange(number)).result()
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {KEY: ShareState(99)}
    assert again.database.commits == 2, "the topics of the test, and all changes"
    again.stop()


def test_a_change_that_finds_no_room_fails_and_the_next_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0)}).result()
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", _no_room)
        failed = opened.write(KEY, ShareStateChange(5))
        with pytest.raises(CatalogFull):
            failed.result()
    opened.write(KEY, ShareStateChange(3)).result()
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {KEY: ShareState(3)}
    again.stop()


def test_a_journal_that_is_broken_is_done_without(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0)}).result()
    opened.write(KEY, ShareStateChange(1)).result()
    opened.journal.broken = True
    opened.write(KEY, ShareStateChange(2)).result()
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {KEY: ShareState(2)}
    again.stop()


def test_without_timers_the_journal_is_read_but_not_written(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0)}).result()
    opened.write(KEY, ShareStateChange(1)).result()
    opened.crash()
    again = Store(tmp_path, journals=False)
    assert again.loaded == {KEY: ShareState(1)}
    again.write(KEY, ShareStateChange(2)).result()
    assert again.journal.size_bytes == 0
    again.stop()
    last = Store(tmp_path)
    assert last.loaded == {KEY: ShareState(2)}
    last.stop()


def test_after_the_last_one_was_deleted_more_can_be_journaled(tmp_path: Path) -> None:
    """The numbers of the entries go on where they were, though there is nothing to load."""
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0)}).result()
    opened.write(KEY, ShareStateChange(1)).result()
    opened.store.delete_group(KEY.group_id).result()
    opened.stop()
    again = Store(tmp_path)
    assert again.loaded == {}
    again.store.put({KEY: ShareState(0)}).result()
    again.write(KEY, ShareStateChange(2)).result()
    again.crash()
    last = Store(tmp_path)
    assert last.loaded == {KEY: ShareState(2)}
    last.stop()


def test_what_is_missing_of_the_journal_is_found_by_verify(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.store.put({KEY: ShareState(0)}).result()
    opened.write(KEY, ShareStateChange(1)).result()
    opened.database.close()
    opened.journal.close()
    assert journal_problems(tmp_path) == []
    (tmp_path / SHARE_JOURNALS[0]).write_bytes(b"")
    assert [file for file, _ in journal_problems(tmp_path)] == [SHARE_JOURNALS[0]]


def _no_room(*_: object) -> int:
    raise CatalogFull("no room")
