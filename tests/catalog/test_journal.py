"""The journal of changes: whole entries in their order, whatever happened to the end of the file."""

from __future__ import annotations

import errno
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from kbroker.catalog.errors import CatalogError, CatalogFull, CatalogTooNew
from kbroker.catalog.sqlite.file_names import last_name
from kbroker.catalog.sqlite.journal import Entry, Journal, check
from kbroker.storage.files import Files, OpenFile
from tests.catalog.journaled import TearingFiles
from tests.storage.faults import Crash, FaultyFiles

NAMES = ("a.journal", "b.journal")


def payload(number: int) -> bytes:
    return b"change %d" % number


def fill(directory: Path, count: int, files: Files | None = None) -> Journal:
    journal = Journal(files or Files(), directory, NAMES)
    journal.read(0)
    for number in range(1, count + 1):
        assert journal.append(payload(number)) == number
    return journal


def entries(directory: Path, after: int = 0) -> list[Entry]:
    journal = Journal(Files(), directory, NAMES)
    try:
        return journal.read(after)
    finally:
        journal.close()


def test_entries_are_read_as_they_were_appended(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    assert entries(tmp_path) == [(number, payload(number)) for number in (1, 2, 3)]
    assert [entry.sequence for entry in entries(tmp_path, after=2)] == [3]


def test_an_entry_may_be_empty(tmp_path: Path) -> None:
    journal = Journal(Files(), tmp_path, NAMES)
    journal.append(b"")
    journal.close()
    assert entries(tmp_path) == [(1, b"")]


def test_entries_of_another_format_are_refused_and_kept(tmp_path: Path) -> None:
    fill(tmp_path, 1).close()
    path = tmp_path / NAMES[0]
    body = b"\x03" + bytes(20)
    content = path.read_bytes() + struct.pack(">II", len(body), zlib.crc32(body)) + body + b"torn"
    path.write_bytes(content)
    with pytest.raises(CatalogTooNew, match=r"a\.journal has entries of format 3, .* remove the file"):
        entries(tmp_path)
    assert path.read_bytes() == content


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    journal = Journal(Files(), tmp_path, NAMES)
    journal.read(0)
    assert journal.append(payload(4)) == 4
    journal.close()
    journal = Journal(Files(), tmp_path, NAMES)
    assert journal.read(after=9) == []
    assert journal.append(payload(10)) == 10
    journal.close()


def test_the_files_take_turns_and_are_emptied(tmp_path: Path) -> None:
    journal = fill(tmp_path, 2)
    journal.turn()
    journal.append(payload(3))
    journal.turn()  # the other one is still needed
    journal.append(payload(4))
    assert all((tmp_path / name).stat().st_size for name in NAMES)
    assert [entry.sequence for entry in entries(tmp_path)] == [1, 2, 3, 4]
    journal.forget(2)
    assert [(tmp_path / name).stat().st_size > 0 for name in NAMES] == [False, True]
    journal.forget(3)
    assert [entry.sequence for entry in entries(tmp_path)] == [3, 4]
    journal.forget(4)
    assert entries(tmp_path) == []
    assert journal.size_bytes == 0
    journal.close()


def test_wherever_the_file_is_cut_the_whole_entries_are_there_and_more_can_follow(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    path = tmp_path / NAMES[0]
    whole = path.read_bytes()
    seen = set()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        journal = Journal(Files(), tmp_path, NAMES)
        found = [entry.sequence for entry in journal.read(0)]
        assert found == list(range(1, len(found) + 1))
        seen.add(len(found))
        journal.append(payload(77))
        journal.close()
        assert entries(tmp_path)[-1] == (len(found) + 1, payload(77))
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("garbage", [bytes(100), b"\xff" * 100, bytes(8) + b"12345678"])
def test_garbage_behind_the_entries_is_cut(tmp_path: Path, garbage: bytes) -> None:
    fill(tmp_path, 2).close()
    with (tmp_path / NAMES[0]).open("ab") as file:
        file.write(garbage)
    journal = Journal(Files(), tmp_path, NAMES)
    assert len(journal.read(0)) == 2
    journal.append(payload(3))
    journal.close()
    assert len(entries(tmp_path)) == 3


def test_damage_is_passed_over_told_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, 5).close()
    path = tmp_path / NAMES[0]
    content = path.read_bytes()
    size = len(content) // 5
    for place in range(size):
        caplog.clear()
        damaged = bytearray(content)
        damaged[2 * size + place] ^= 0x10
        path.write_bytes(damaged)
        assert check(Files(), tmp_path, NAMES, 0)
        assert [entry.sequence for entry in entries(tmp_path)] == [1, 2, 4, 5]
        assert "1 changes that had been acknowledged are gone, numbers 3 to 3" in caplog.text
        assert (tmp_path / f"{NAMES[0]}.damaged").read_bytes() == damaged


@pytest.mark.parametrize("keep", [0, 1, 2])
@pytest.mark.parametrize("torn", [0, 7])
def test_entries_that_are_cut_off_are_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, keep: int, torn: int
) -> None:
    fill(tmp_path, 3).close()
    path = tmp_path / NAMES[0]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3 * keep + torn])
    assert check(Files(), tmp_path, NAMES, 0)[-1][1].endswith(f"are lost, numbers {keep + 1} to 3")
    assert len(entries(tmp_path)) == keep
    assert f"are gone, numbers {keep + 1} to 3" in caplog.text


def test_a_file_that_is_deleted_is_missed_unless_the_catalog_has_its_entries(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, 3).close()
    (tmp_path / NAMES[0]).unlink()
    assert check(Files(), tmp_path, NAMES, 3) == []
    assert len(check(Files(), tmp_path, NAMES, 2)) == 1
    assert entries(tmp_path, after=3) == []
    assert not caplog.records
    journal = Journal(Files(), tmp_path, NAMES)
    assert journal.read(after=1) == []
    assert journal.lost == 2
    journal.close()


def test_a_last_number_that_is_damaged_or_missing_says_nothing(tmp_path: Path) -> None:
    fill(tmp_path, 3).close()
    path = tmp_path / last_name(NAMES)
    right = path.read_bytes()
    for content in (b"", b"x", right[:-1], bytes([right[0] ^ 1]) + right[1:]):
        path.write_bytes(content)
        assert check(Files(), tmp_path, NAMES, 0) == []
        assert len(entries(tmp_path)) == 3


def test_a_changed_byte_ends_what_is_read(tmp_path: Path) -> None:
    fill(tmp_path, 2).close()
    path = tmp_path / NAMES[0]
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert [entry.sequence for entry in entries(tmp_path)] == [1]


def test_what_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    files = TearingFiles()
    journal = fill(tmp_path, 1, files)
    files.share = 0.5
    with pytest.raises(CatalogFull):
        journal.append(payload(2))
    files.share = None
    assert not journal.broken
    assert journal.append(payload(3)) == 2
    journal.close()
    assert entries(tmp_path)[-1] == (2, payload(3))


def test_what_can_be_neither_written_nor_undone_ends_it(tmp_path: Path) -> None:
    files = TearingFiles()
    journal = fill(tmp_path, 1, files)
    files.share, files.truncates = 0, False
    with pytest.raises(CatalogError):
        journal.append(payload(2))
    assert journal.broken
    journal.close()


def test_a_closed_journal_touches_no_file(tmp_path: Path) -> None:
    """Its descriptors may be those of others by now."""
    journal = fill(tmp_path, 1)
    journal.close()
    journal.close()
    with (tmp_path / "other").open("wb") as other:
        other.write(b"other")
        other.flush()
        with pytest.raises(CatalogError):
            journal.append(payload(2))
        journal.forget(1)
    assert (tmp_path / "other").read_bytes() == b"other"
    assert entries(tmp_path) == [(1, payload(1))]


def test_a_journal_that_gets_no_descriptor_keeps_none_and_can_be_opened_later(tmp_path: Path) -> None:
    class OneDescriptor(Files):
        given: OpenFile | None = None

        def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
            if self.given is not None:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            self.given = super().open(path, write=write, create=create)
            return self.given

    files = OneDescriptor()
    with pytest.raises(CatalogFull):
        Journal(files, tmp_path, NAMES)
    assert files.given is not None
    assert files.given.fd == -1
    Journal(Files(), tmp_path, NAMES).close()


@pytest.mark.parametrize("fault", ["crash", "torn", "error", "full"])
def test_whichever_operation_fails_what_was_acknowledged_is_read_again(tmp_path: Path, fault: str) -> None:
    """Entries, turns of the files, and emptied ones, with a fault at each operation on a file in turn."""
    whole = FaultyFiles()
    assert live(tmp_path / "whole", whole) == (6, 4)
    for number in range(len(whole.operations)):
        directory = tmp_path / str(number)
        acknowledged, applied = live(directory, FaultyFiles(number, fault))
        found = [(entry.sequence, entry.payload) for entry in entries(directory, applied)]
        expected = [(each, payload(each)) for each in range(applied + 1, acknowledged + 1)]
        assert found[: len(expected)] == expected
        unanswered = int(fault in ("crash", "torn"))  # one may have been written when the process was killed
        assert len(found) <= len(expected) + unanswered


def live(directory: Path, files: FaultyFiles) -> tuple[int, int]:
    """What was acknowledged, and up to where the database has it, when the process died or gave up."""
    directory.mkdir()
    acknowledged = applied = 0
    try:
        journal = Journal(files, directory, NAMES)
        journal.read(0)
        for each in range(1, 7):
            with suppress(CatalogError):
                acknowledged = journal.append(payload(acknowledged + 1))
            if each in (2, 4):
                journal.turn()
                applied = acknowledged
                journal.forget(applied)
        journal.close()
    except (Crash, CatalogError):
        pass
    return acknowledged, applied
