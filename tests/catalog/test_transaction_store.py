"""What the transaction coordinator's store of every catalog keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kbroker.coordinators.transactions.store import TransactionStore
from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction, TransactionState
from tests.handlers.conftest import ManualScheduler

from .conftest import Reopen

FULL = Transaction(
    "tränsaktion",
    producer_id=2**62,
    producer_epoch=32767,
    timeout_ms=60_000,
    last_update_ms=1_700_000_000_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset((TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 2**31 - 1))),
    start_ms=1_699_999_999_999,
    previous_producer_id=5,
    next_producer_id=6,
    last_producer_epoch=32766,
    transaction_version=2,
)
Open = Callable[[], TransactionStore]


@pytest.fixture
def open_store(reopen: Reopen) -> Iterator[Open]:
    """The store, as after a restart."""
    opened: list[TransactionStore] = []

    def open_again() -> TransactionStore:
        while opened:
            opened.pop().close()
        opened.append(reopen().transaction_store(ManualScheduler()))
        return opened[0]

    yield open_again
    while opened:
        opened.pop().close()


def test_every_field_of_a_transaction_is_kept(open_store: Open) -> None:
    open_store().save(FULL).result()
    assert open_store().load() == [FULL]


def test_a_transaction_replaces_the_one_before(open_store: Open) -> None:
    store = open_store()
    store.save(FULL).result()
    completed = FULL.completed(1_700_000_000_001)
    store.save(completed).result()
    assert open_store().load() == [completed]


def test_a_deleted_transactional_id_is_gone(open_store: Open) -> None:
    store = open_store()
    store.save(FULL).result()
    store.delete("another").result()
    assert store.load() == [FULL]
    store.delete(FULL.transactional_id).result()
    assert open_store().load() == []
