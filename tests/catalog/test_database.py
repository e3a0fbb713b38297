"""The catalog's database: grouped commits, single failures, full disks, schema versions."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.catalog.errors import CatalogError, CatalogFull, CatalogTooNew
from kbroker.catalog.sqlite import facts
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.schema import MIGRATIONS
from tests.catalog.small_disk import save
from tests.support.server_process import eventually


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "catalog.sqlite")
    yield database
    database.close()


def test_a_write_is_there_after_reopening(tmp_path: Path) -> None:
    database = Database(tmp_path / "catalog.sqlite")
    save(database, "colour", "blue").result()
    database.close()
    again = Database(tmp_path / "catalog.sqlite")
    assert facts.load(again)["colour"] == "blue"
    again.close()


def test_writes_that_wait_share_a_commit(database: Database) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        started.set()
        go_on.wait(30)

    database.start(lambda callback: callback())
    before = database.commits
    first = database.write(slow)
    assert started.wait(30)
    rest = [save(database, f"fact {number}", "x") for number in range(100)]
    go_on.set()
    eventually(lambda: first.done and all(write.done for write in rest))
    assert database.commits - before == 2


def test_a_write_that_raises_fails_alone(database: Database) -> None:
    database.start(lambda callback: callback())

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO facts VALUES ('half', 'done')")
        raise ValueError("on purpose")

    writes = [save(database, "a", "1"), database.write(broken), save(database, "b", "2")]
    eventually(lambda: all(write.done for write in writes))
    with pytest.raises(ValueError, match="on purpose"):
        writes[1].result()
    found = database.write(lambda connection: dict(connection.execute("SELECT name, value FROM facts")))
    eventually(lambda: found.done)
    assert found.result() == {"a": "1", "b": "2"}


def test_a_full_disk_is_told_apart_and_passes(database: Database) -> None:
    (pages,) = database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone())
    database.read(lambda connection: connection.execute(f"PRAGMA max_page_count={pages}").fetchone())
    with pytest.raises(CatalogFull):
        save(database, "large", "x" * 1_000_000).result()
    database.read(lambda connection: connection.execute("PRAGMA max_page_count=100000").fetchone())
    save(database, "later", "fine").result()
    assert facts.load(database)["later"] == "fine"


def test_an_error_of_sqlite_is_a_catalog_error(database: Database) -> None:
    with pytest.raises(CatalogError):
        database.write(lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)")).result()


def test_a_database_of_a_newer_kbroker_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(CatalogTooNew, match="newer"):
        Database(path)


@pytest.mark.parametrize("seen", range(len(MIGRATIONS)))
def test_every_older_schema_is_brought_up_to_date(tmp_path: Path, seen: int) -> None:
    path = tmp_path / "catalog.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    for script in MIGRATIONS[:seen]:
        connection.executescript(script)
    connection.execute(f"PRAGMA user_version={seen}")
    connection.close()
    database = Database(path)
    save(database, "still", "works").result()
    fresh = Database(tmp_path / "fresh.sqlite")
    assert schema(database) == schema(fresh)
    database.close()
    fresh.close()


def schema(database: Database) -> list[tuple[str, str]]:
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    return database.read(lambda connection: connection.execute(query).fetchall())


def test_writes_asked_for_before_closing_are_done(tmp_path: Path) -> None:
    database = Database(tmp_path / "catalog.sqlite")
    database.start(lambda callback: callback())
    for number in range(500):
        save(database, f"fact {number}", "x")
    database.close()
    again = Database(tmp_path / "catalog.sqlite")
    assert len(facts.load(again)) == 500
    again.close()
