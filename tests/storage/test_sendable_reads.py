"""What is read from the disk only to be sent is not read: the same batches, as a part of the file."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbroker.protocol.records import iter_batches
from kbroker.storage.files import OpenFile, WouldBlock
from kbroker.storage.interface import Buffer, Log, Slice
from kbroker.storage.segments.file_range import FileRange

from .faults import QuickFiles
from .support import NOW, Storage, batch, now_or, read, transactional

RANGE_BYTES = 64 * 1024


class ColdStart(QuickFiles):
    """A page cache that has nothing until it is told, and then everything."""

    def __init__(self) -> None:
        super().__init__()
        self.cold = False
        self.loaded = 0

    def read_cached(self, file: OpenFile, size: int, position: int) -> Buffer:
        if self.cold:
            raise WouldBlock(file, size, position)
        return super().read_at(file, size, position)

    def load_pages(self, file: OpenFile, size: int, position: int) -> None:
        super().load_pages(file, size, position)
        self.cold = False
        self.loaded += size


@pytest.fixture
def files() -> ColdStart:
    return ColdStart()


@pytest.fixture
def storage(tmp_path: Path, files: ColdStart) -> Iterator[Storage]:
    opened = Storage(tmp_path / "data", files=files)
    yield opened
    opened.directory.close()


def cold_read(log: Log, files: ColdStart, offset: int, max_bytes: int, **options: bool) -> Slice:
    files.cold = True
    found = now_or(log.read(offset, max_bytes, sendable=True, **options))
    assert isinstance(found, Slice)
    return found


def stored(part: FileRange) -> bytes:
    return os.pread(part._file.fd, len(part), part._position)


def content(found: Slice) -> bytes:
    parts = [stored(part) if isinstance(part, FileRange) else bytes(part) for part in found.buffers]
    assert sum(map(len, parts)) == found.size_bytes
    return b"".join(parts)


def is_range(found: Slice) -> bool:
    return any(isinstance(part, FileRange) for part in found.buffers)


def fill(storage: Storage, sizes: list[int], segment_bytes: int = 10**6, interval: int = 4096) -> Log:
    log = storage.log(segment_bytes=segment_bytes, index_interval_bytes=interval)
    for number, size in enumerate(sizes):
        log.append_as_leader(batch("x" * size, "y", timestamp=NOW + number), NOW)
    return log


def is_first_of_segment(log: Log, offset: int) -> bool:
    return any(segment.base_offset == offset for segment in log._segments)  # type: ignore[attr-defined]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_same_batches_come_either_way(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    files = ColdStart()
    storage = Storage(tmp_path_factory.mktemp("data"), files=files)
    sizes = data.draw(st.lists(st.sampled_from((1, 300, 5_000, 70_000)), min_size=5, max_size=60))
    interval = data.draw(st.sampled_from((0, 4096, 100_000)))
    log = fill(storage, sizes, data.draw(st.sampled_from((150_000, 10**6))), interval)
    for _ in range(10):
        offset = data.draw(st.integers(0, log.log_end_offset - 1))
        max_bytes = data.draw(st.sampled_from((1, RANGE_BYTES, 100_000, 200_000, 10**6)))
        min_one = data.draw(st.booleans())
        log._reader.forget()  # type: ignore[attr-defined]
        found = cold_read(log, files, offset, max_bytes, min_one=min_one)
        expected = read(log, offset, max_bytes, min_one=min_one)
        if not is_range(found):
            assert content(found) == content(expected)
            continue
        # A search that reads returns less than would fit, if there were batches to be passed over.
        assert content(found).startswith(content(expected))
        headers = [header for _, header in iter_batches(content(found))]
        assert headers[-1].next_offset == found.next_offset
        assert found.size_bytes <= max_bytes
        after = [header for _, header in iter_batches(content(read(log, found.next_offset, max_bytes)))]
        if after and not is_first_of_segment(log, after[0].base_offset):
            assert found.size_bytes + after[0].size_bytes > max_bytes
    storage.directory.close()


def test_a_reader_of_old_batches_is_served_from_the_file_to_the_end(
    storage: Storage, files: ColdStart
) -> None:
    log = fill(storage, [20_000] * 50)
    offset, kinds, got = 0, [], b""
    while offset < log.log_end_offset:
        files.cold = not offset  # the kernel reads ahead: all is in the cache, but nobody has looked at it
        found = now_or(log.read(offset, 200_000, sendable=True))
        kinds.append(is_range(found))
        got += content(found)
        offset = found.next_offset
    assert kinds == [True] * (len(kinds) - 1) + [False]  # what is left is too small
    assert files.loaded >= len(got)
    assert [header.base_offset for _, header in iter_batches(got)] == list(range(0, 100, 2))


def test_what_is_in_the_cache_is_read(storage: Storage) -> None:
    log = fill(storage, [20_000] * 50)
    assert not is_range(read(log, 0, 10**6, sendable=True))


def test_who_looks_at_the_bytes_gets_bytes(storage: Storage, files: ColdStart) -> None:
    log = fill(storage, [20_000] * 50)
    files.cold = True
    assert not is_range(now_or(log.read(0, 10**6)))


def test_a_committed_range_ends_where_a_transaction_is_open(storage: Storage, files: ColdStart) -> None:
    log = fill(storage, [20_000] * 20)
    stable = log.log_end_offset
    log.append_as_leader(transactional(0, "z" * 100_000), NOW)
    found = cold_read(log, files, 0, 10**7, committed=True)
    assert is_range(found)
    assert found.next_offset == stable < log.high_watermark
    assert [header.next_offset for _, header in iter_batches(content(found))][-1] == stable


def test_a_range_outlives_its_segment(storage: Storage, files: ColdStart) -> None:
    log = fill(storage, [20_000] * 50, segment_bytes=200_000)
    expected = content(read(log, 0, 150_000))
    found = cold_read(log, files, 0, 150_000)
    log.delete_records_before(90)
    log.apply_retention(NOW)  # type: ignore[attr-defined]
    storage.directory.tick(NOW + 10**9)
    assert is_range(found)
    assert content(found) == expected


def test_a_file_that_ends_too_soon_is_told_of(storage: Storage, files: ColdStart) -> None:
    log = fill(storage, [100_000] * 5, segment_bytes=10**8)
    found = cold_read(log, files, 0, 10**7)
    (part,) = found.buffers
    assert isinstance(part, FileRange)
    os.truncate(log._segments[0].file.path, 0)  # type: ignore[attr-defined]
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(EOFError):
        part.send(ours.fileno())


def test_what_a_slow_reader_left_is_loaded_again_before_it_is_sent(
    storage: Storage, files: ColdStart
) -> None:
    log = fill(storage, [100_000] * 30, segment_bytes=10**8)
    found = cold_read(log, files, 0, 10**7)
    expected, loaded = content(found), files.loaded
    (part,) = found.buffers
    assert isinstance(part, FileRange)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    got = b""
    with ours, theirs:
        with contextlib.suppress(BlockingIOError):
            while len(part):
                part.send(ours.fileno())
        assert len(part)
        got += theirs.recv(1 << 24)
        with pytest.raises(BlockingIOError):
            part.send(ours.fileno())  # though there is room now
        while len(part):
            part.load().result()
            with contextlib.suppress(BlockingIOError):
                while len(part):
                    part.send(ours.fileno())
            got += theirs.recv(1 << 24)
        ours.close()
        while more := theirs.recv(1 << 20):
            got += more
    assert got == expected
    assert files.loaded > loaded
