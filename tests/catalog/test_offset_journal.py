"""The journal of offset commits: whole entries in their order, whatever happened to the end of the file."""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.catalog.database import CatalogError, CatalogFull, CatalogTooNew
from kbroker.catalog.journal_entry import encode, read_whole
from kbroker.catalog.offset_journal import OffsetJournal
from kbroker.catalog.stored import JOURNALS
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition

Groups = dict[str, dict[TopicPartition, CommittedOffset]]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONGS = st.integers(-(2**63) + 1, 2**63 - 1)
GROUPS = st.dictionaries(
    TEXTS,
    st.dictionaries(
        st.builds(TopicPartition, TEXTS, st.integers(0, 2**31 - 1)),
        st.builds(
            CommittedOffset,
            LONGS,
            st.integers(-(2**31), 2**31 - 1),
            TEXTS,
            LONGS,
            st.none() | LONGS,
            st.binary(min_size=16, max_size=16),
            LONGS,
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=3,
)


def commit(number: int) -> Groups:
    """A commit of two partitions."""
    committed = CommittedOffset(1000 + number, -1, "é", 17, None, bytes(range(16)), number)
    return {"group": {TopicPartition("orders", partition): committed for partition in (number, number + 100)}}


def framed(payload: bytes) -> bytes:
    return struct.pack(">II", len(payload), zlib.crc32(payload)) + payload


def as_json(sequence: int, groups: Groups) -> bytes:
    """The entry as versions before format 2 wrote it."""
    rows = [
        (group_id, *partition, *committed)
        for group_id, offsets in groups.items()
        for partition, committed in offsets.items()
    ]
    return framed(json.dumps((sequence, rows), separators=(",", ":"), default=bytes.hex).encode())


def fill(directory: Path, count: int) -> OffsetJournal:
    journal = OffsetJournal(directory)
    journal.read(0)
    for number in range(1, count + 1):
        assert journal.append(commit(number)) == number
    return journal


def entries(directory: Path, after: int = 0) -> list[tuple[int, Groups]]:
    journal = OffsetJournal(directory)
    try:
        return [tuple(entry) for entry in journal.read(after)]
    finally:
        journal.close()


@given(st.lists(GROUPS, max_size=3))
def test_whatever_is_committed_is_read_again(commits: list[Groups]) -> None:
    data = b"".join(encode(number, groups) for number, groups in enumerate(commits))
    assert read_whole(data) == (list(enumerate(commits)), len(data))


def test_entries_are_read_as_they_were_appended(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    assert entries(tmp_path) == [(n, commit(n)) for n in (1, 2, 3)]
    assert [sequence for sequence, _ in entries(tmp_path, after=2)] == [3]


def test_entries_of_an_older_version_are_read_and_newer_ones_follow_them(tmp_path: Path) -> None:
    (tmp_path / JOURNALS[0]).write_bytes(as_json(1, commit(1)) + as_json(2, commit(2)))
    journal = OffsetJournal(tmp_path)
    assert journal.read(0) == [(1, commit(1)), (2, commit(2))]
    assert journal.append(commit(3)) == 3
    journal.close()
    assert entries(tmp_path) == [(n, commit(n)) for n in (1, 2, 3)]


def test_entries_of_a_newer_version_are_refused_and_kept(tmp_path: Path) -> None:
    fill(tmp_path, 1).close()
    path = tmp_path / JOURNALS[0]
    content = path.read_bytes() + framed(b"\x03") + b"torn"
    path.write_bytes(content)
    with pytest.raises(CatalogTooNew):
        entries(tmp_path)
    assert path.read_bytes() == content


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    journal = OffsetJournal(tmp_path)
    journal.read(0)
    assert journal.append(commit(4)) == 4
    journal.close()
    journal = OffsetJournal(tmp_path)
    assert journal.read(after=9) == []
    assert journal.append(commit(10)) == 10
    journal.close()


def test_the_files_take_turns_and_are_emptied(tmp_path: Path) -> None:
    journal = fill(tmp_path, 2)
    journal.turn()
    journal.append(commit(3))
    journal.turn()  # the other one is still needed
    journal.append(commit(4))
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
        journal.append(commit(77))
        journal.close()
        assert entries(tmp_path)[-1] == (len(found) + 1, commit(77))
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("garbage", [bytes(100), b"\xff" * 100, b"\0\0\0\0\0\0\0\0{}"])
def test_garbage_behind_the_entries_is_cut(tmp_path: Path, garbage: bytes) -> None:
    fill(tmp_path, 2).close()
    with (tmp_path / JOURNALS[0]).open("ab") as file:
        file.write(garbage)
    journal = OffsetJournal(tmp_path)
    assert len(journal.read(0)) == 2
    journal.append(commit(3))
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
        journal.append(commit(2))
    monkeypatch.undo()
    assert not journal.broken
    assert journal.append(commit(3)) == 2
    journal.close()
    assert entries(tmp_path)[-1] == (2, commit(3))


def test_what_can_be_neither_written_nor_undone_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = fill(tmp_path, 1)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "pwrite", fail)
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(CatalogError):
        journal.append(commit(2))
    assert journal.broken
    monkeypatch.undo()
    journal.close()
