from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbroker.catalog.memory_transactions import MemoryTransactionStore
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.transactions import SqliteTransactionStore
from kbroker.coordinators.transactions.store import TransactionStore
from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction, TransactionState

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
Reopen = Callable[[], TransactionStore]


@pytest.fixture(params=["memory", "catalog"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reopen]:
    """The store, as after a restart."""
    if request.param == "memory":
        memory = MemoryTransactionStore()
        yield lambda: memory
        return
    databases: list[Database] = []

    def open_again() -> TransactionStore:
        for database in databases:
            database.close()
        databases[:] = [Database(tmp_path / "catalog.sqlite")]
        return SqliteTransactionStore(databases[0])

    yield open_again
    for database in databases:
        database.close()


def test_every_field_of_a_transaction_is_kept(reopen: Reopen) -> None:
    reopen().save(FULL).result()
    assert reopen().load() == [FULL]


def test_a_transaction_replaces_the_one_before(reopen: Reopen) -> None:
    store = reopen()
    store.save(FULL).result()
    completed = FULL.completed(1_700_000_000_001)
    store.save(completed).result()
    assert reopen().load() == [completed]


def test_a_deleted_transactional_id_is_gone(reopen: Reopen) -> None:
    store = reopen()
    store.save(FULL).result()
    store.delete("another").result()
    assert store.load() == [FULL]
    store.delete(FULL.transactional_id).result()
    assert reopen().load() == []
