"""The catalog on a disk without room: what makes it no larger is written, all else is refused."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.rows import TopicRow
from kbroker.catalog.sqlite import facts
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.reserved_room import WAL_BYTES
from kbroker.catalog.sqlite.topics import create, delete, forget_deleted, load
from tests.catalog.small_disk import save
from tests.support.small_disk import SmallDisk, small_disk

TOPICS = 200
KILLED = """
import os, signal, sys
from pathlib import Path
from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.rows import TopicRow
from kbroker.catalog.sqlite import facts
from kbroker.catalog.sqlite.database import Database
database = Database(Path(sys.argv[1]))
for number in range(100):
    database.write(lambda connection: facts.put(connection, "name", str(number))).result()
os.kill(os.getpid(), signal.SIGKILL)
"""


def wal(path: Path) -> Path:
    return Path(f"{path}-wal")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        yield disk


def fill(database: Database) -> None:
    for number in range(TOPICS):
        row = TopicRow(f"topic {number}", number.to_bytes(16, "big"), 1, 0)
        create(database, row, {"retention.ms": str(number)}).result()


def names(database: Database) -> set[str]:
    return {row.name for row in load(database)}


def test_the_log_has_room_while_the_database_is_open_and_while_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    database = Database(path)
    assert wal(path).stat().st_blocks * 512 >= WAL_BYTES
    save(database, "name", "value").result()
    database.close()
    assert wal(path).stat().st_blocks * 512 >= WAL_BYTES
    again = Database(path)
    assert facts.load(again)["name"] == "value"
    again.close()


def test_others_can_read_a_database_that_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    database = Database(path)
    save(database, "name", "value").result()
    database.close()
    for uri in (f"file:{path}?mode=ro", f"file:{path}"):
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            assert dict(connection.execute("SELECT name, value FROM facts"))["name"] == "value"
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_database_has_the_room_of_its_pages_before_it_is_emptied_into(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    database = Database(path)
    fill(database)
    (pages,) = database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone())
    assert path.stat().st_blocks * 512 >= pages * 4096
    database.close()


@pytest.mark.parametrize("end", ["stays open", "closed", "killed"])
def test_topics_are_deleted_again_and_again_without_room(disk: SmallDisk, end: str) -> None:
    path = disk.path / "catalog.sqlite"
    database = Database(path)
    fill(database)
    if end != "stays open":
        database.close()
    if end == "killed":
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
        assert killed.returncode == -signal.SIGKILL
    disk.fill()
    if end != "stays open":
        database = Database(path)
    assert disk.free_bytes == 0
    refused = 0
    for number in range(TOPICS):
        topic_id = number.to_bytes(16, "big")
        delete(database, topic_id).result()
        forget_deleted(database, topic_id).result()
        save(database, "unclean.starts", str(number)).result()
        try:
            save(database, f"large {number}", "x" * 10_000).result()
        except CatalogFull:
            refused += 1
    assert refused
    assert names(database) == set()
    disk.empty()
    save(database, "large", "x" * 1_000_000).result()
    database.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        known = dict(connection.execute("SELECT name, value FROM facts"))
    assert known["unclean.starts"] == str(TOPICS - 1)
    assert len(known["large"]) == 1_000_000


def test_one_write_that_finds_no_room_does_not_take_its_group_along(disk: SmallDisk) -> None:
    database = Database(disk.path / "catalog.sqlite")
    fill(database)
    disk.fill()
    settled: list[int] = []
    database.start(lambda callback: callback())
    large = [save(database, f"large {number}", "x" * 100_000) for number in range(3)]
    small = [delete(database, number.to_bytes(16, "big")) for number in range(20)]
    for number, pending in enumerate(small):
        pending.then(lambda _, number=number: settled.append(number))  # type: ignore[misc]
    database.close()
    assert len(settled) == 20
    for pending in small:
        pending.result()
    for each in large:
        with pytest.raises(CatalogFull):
            each.result()
