"""Transactions that are journaled first and applied later: the same as if each had been written at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.sqlite.file_names import TRANSACTION_JOURNALS
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.stored import transactions_are_stored
from kbroker.catalog.sqlite.transactions import SqliteTransactionStore
from kbroker.coordinators.transactions.transaction import Transaction
from kbroker.pending import Pending
from tests.catalog.journaled import JournaledStoreMachine, OpenedStore
from tests.catalog.manual_timers import ManualTimers

IDS = st.sampled_from(["a", "b", "c"])


def transaction(transactional_id: str, number: int) -> Transaction:
    return Transaction(transactional_id + "n" * 9000, number, 0, 60_000, number)  # more than a page


class Store(OpenedStore):
    names = TRANSACTION_JOURNALS

    def __init__(self, directory: Path, *, journals: bool = True) -> None:
        super().__init__(directory)
        self.timers = ManualTimers()
        self.store = SqliteTransactionStore(
            self.database,
            self.journal,
            self.timers if journals else None,
            stored=transactions_are_stored(self.database),
        )
        self.loaded = {each.transactional_id[0]: each for each in self.store.load()}

    def save(self, transaction: Transaction) -> Pending[None]:
        saved = self.store.save(transaction)
        self.timers.end_turn()
        return saved

    def stop(self) -> None:
        self.store.close()
        self.database.close()


class JournaledTransactions(JournaledStoreMachine):
    opened: Store

    def __init__(self) -> None:
        self.expected: dict[str, Transaction] = {}
        self.number = 0
        super().__init__()

    def open(self) -> None:
        self.opened = Store(self.path)
        assert self.opened.loaded == self.expected

    @rule(transactional_id=IDS)
    def save(self, transactional_id: str) -> None:
        self.number += 1
        saved = transaction(transactional_id, self.number)
        self.opened.save(saved).result()
        self.expected[transactional_id] = saved

    @rule(transactional_id=IDS, then_save=st.booleans(), then_apply=st.booleans())
    def delete(self, transactional_id: str, then_save: bool, then_apply: bool) -> None:
        """What comes after it may come before it is done."""
        self.opened.database.held = True
        deleted = self.opened.store.delete(transactional_id + "n" * 9000)
        expected = {key: value for key, value in self.expected.items() if key != transactional_id}
        if then_save:
            self.save(transactional_id)
            expected[transactional_id] = self.expected[transactional_id]
        if then_apply:
            self.opened.timers.fire()
        self.opened.database.finish()
        if self.done(deleted):
            self.expected = expected

    @rule()
    def apply(self) -> None:
        self.opened.timers.fire()

    @invariant()
    def what_is_journaled_is_to_be_applied(self) -> None:
        if self.opened.journal.size_bytes:
            assert self.opened.timers.due_later


JournaledTransactions.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestJournaledTransactions = JournaledTransactions.TestCase


def test_a_save_is_done_after_the_turn_in_which_it_was_asked_for(tmp_path: Path) -> None:
    """Who asked goes on first: so an answer can be on its way before what follows from it."""
    opened = Store(tmp_path)
    saved = opened.store.save(transaction("a", 1))
    assert not saved.done
    opened.timers.end_turn()
    assert saved.done
    opened.crash()


def test_many_saves_are_one_transaction_of_the_database(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    before = opened.database.commits
    for number in range(100):
        opened.save(transaction("ab"[number % 2], number)).result()
    opened.timers.fire()
    assert opened.database.commits - before == 1
    assert opened.read("SELECT producer_id FROM transactions ORDER BY 1") == [(98,), (99,)]
    assert opened.journal.size_bytes == 0
    opened.stop()


def test_a_save_that_finds_no_room_fails_and_the_next_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Store(tmp_path)
    opened.save(transaction("a", 1)).result()
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", _no_room)
        failed = opened.save(transaction("a", 2))
        with pytest.raises(CatalogFull):
            failed.result()
    opened.save(transaction("b", 3)).result()
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {"a": transaction("a", 1), "b": transaction("b", 3)}
    again.stop()


def test_a_journal_that_is_broken_is_done_without(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.save(transaction("a", 1)).result()
    opened.journal.broken = True
    opened.save(transaction("a", 2)).result()
    opened.save(transaction("b", 3)).result()
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {"a": transaction("a", 2), "b": transaction("b", 3)}
    again.stop()


def test_without_timers_the_journal_is_read_but_not_written(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.save(transaction("a", 1)).result()
    opened.crash()
    again = Store(tmp_path, journals=False)
    assert again.loaded == {"a": transaction("a", 1)}
    again.save(transaction("a", 2)).result()
    assert again.journal.size_bytes == 0
    again.stop()
    last = Store(tmp_path)
    assert last.loaded == {"a": transaction("a", 2)}
    last.stop()


def test_after_the_last_one_was_deleted_more_can_be_journaled(tmp_path: Path) -> None:
    """The numbers of the entries go on where they were, though there is nothing to load."""
    opened = Store(tmp_path)
    opened.save(transaction("a", 1)).result()
    opened.store.delete("a" + "n" * 9000).result()
    opened.stop()
    again = Store(tmp_path)
    assert again.loaded == {}
    again.save(transaction("a", 2)).result()
    again.crash()
    last = Store(tmp_path)
    assert last.loaded == {"a": transaction("a", 2)}
    last.stop()


def _no_room(*_: object) -> int:
    raise CatalogFull("no room")


def test_what_is_deleted_does_not_come_back_with_what_is_applied_meanwhile(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.save(transaction("a", 1)).result()
    opened.database.held = True
    deleted = opened.store.delete("a" + "n" * 9000)
    opened.timers.fire()
    opened.database.finish()
    deleted.result()
    opened.stop()
    again = Store(tmp_path)
    assert again.loaded == {}
    again.stop()


def test_what_is_journaled_while_others_are_applied_stays_journaled(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    opened.save(transaction("a", 1)).result()
    opened.database.held = True
    opened.timers.fire()
    opened.save(transaction("a", 2)).result()
    opened.database.finish()
    opened.crash()
    again = Store(tmp_path)
    assert again.loaded == {"a": transaction("a", 2)}
    again.stop()
