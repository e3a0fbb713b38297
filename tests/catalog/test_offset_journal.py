"""The journal of offset commits: whole entries in their order, whatever happened to the end of the file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kbroker.catalog.database import CatalogError, CatalogFull
from kbroker.catalog.offset_journal import OffsetJournal, Row
from kbroker.catalog.stored import JOURNALS


def row(number: int) -> Row:
    return ("group", "orders", number, 1000 + number, -1, "é", 17, None, bytes(range(16)), number)


def fill(directory: Path, count: int) -> OffsetJournal:
    journal = OffsetJournal(directory)
    journal.read(0)
    for number in range(1, count + 1):
        assert journal.append([row(number), row(number + 100)]) == number
    return journal


def entries(directory: Path, after: int = 0) -> list[tuple[int, list[Row]]]:
    journal = OffsetJournal(directory)
    try:
        return journal.read(after)
    finally:
        journal.close()


def test_entries_are_read_as_they_were_appended(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    assert entries(tmp_path) == [(n, [row(n), row(n + 100)]) for n in (1, 2, 3)]
    assert [sequence for sequence, _ in entries(tmp_path, after=2)] == [3]


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    journal = OffsetJournal(tmp_path)
    journal.read(0)
    assert journal.append([row(4)]) == 4
    journal.close()
    journal = OffsetJournal(tmp_path)
    assert journal.read(after=9) == []
    assert journal.append([row(10)]) == 10
    journal.close()


def test_the_files_take_turns_and_are_emptied(tmp_path: Path) -> None:
    journal = fill(tmp_path, 2)
    journal.turn()
    journal.append([row(3)])
    journal.turn()  # the other one is still needed
    journal.append([row(4)])
    first, second = ((tmp_path / name) for name in JOURNALS)
    sizes = first.stat().st_size, second.stat().st_size
    assert all(sizes)
    assert [sequence for sequence, _ in entries(tmp_path)] == [1, 2, 3, 4]
    journal.forget(2)
    assert {first.stat().st_size, second.stat().st_size} == {0, max(sizes[1], 0)}
    journal.forget(3)
    assert [sequence for sequence, _ in entries(tmp_path)] == [3, 4]
    journal.forget(4)
    assert entries(tmp_path) == []
    journal.close()


def test_wherever_the_file_is_cut_the_whole_entries_are_there_and_more_can_follow(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    path = tmp_path / JOURNALS[0]
    whole = path.read_bytes()
    seen = set()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        journal = OffsetJournal(tmp_path)
        found = [sequence for sequence, _ in journal.read(0)]
        assert found == list(range(1, len(found) + 1))
        seen.add(len(found))
        journal.append([row(77)])
        journal.close()
        assert entries(tmp_path)[-1] == (len(found) + 1, [row(77)])
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("garbage", [bytes(100), b"\xff" * 100, b"\0\0\0\0\0\0\0\0{}"])
def test_garbage_behind_the_entries_is_cut(tmp_path: Path, garbage: bytes) -> None:
    fill(tmp_path, 2).close()
    with (tmp_path / JOURNALS[0]).open("ab") as file:
        file.write(garbage)
    journal = OffsetJournal(tmp_path)
    assert len(journal.read(0)) == 2
    journal.append([row(3)])
    journal.close()
    assert len(entries(tmp_path)) == 3


def test_a_changed_byte_ends_what_is_read(tmp_path: Path) -> None:
    fill(tmp_path, 2).close()
    path = tmp_path / JOURNALS[0]
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert [sequence for sequence, _ in entries(tmp_path)] == [1]


def test_what_does_not_fit_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = fill(tmp_path, 1)
    write = os.pwrite
    asked: list[int] = []

    def half(fd: int, data: bytes, position: int) -> int:
        asked.append(position)
        if len(asked) > 1:
            raise OSError(errno.ENOSPC, "no space left")
        return write(fd, data[: len(data) // 2], position)

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(CatalogFull):
        journal.append([row(2)])
    monkeypatch.undo()
    assert not journal.broken
    assert journal.append([row(3)]) == 2
    journal.close()
    assert entries(tmp_path)[-1] == (2, [row(3)])


def test_what_can_be_neither_written_nor_undone_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = fill(tmp_path, 1)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "pwrite", fail)
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(CatalogError):
        journal.append([row(2)])
    assert journal.broken
    monkeypatch.undo()
    journal.close()
