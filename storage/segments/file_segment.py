"""A segment in files: `.log` with the batches, and `.index`, `.timeindex`, `.txnindex` beside it.

Only the `.log` is written at once. The others follow from it: their ends are kept in memory until `persist`,
and recovery makes again what a crash took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kbroker.protocol.records import BATCH_OVERHEAD, BatchHeader, read_header
from kbroker.storage import names
from kbroker.storage.config import LogConfig
from kbroker.storage.errors import StorageError
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.partition import transaction_index
from kbroker.storage.partition.transaction_index import ENTRY_BYTES, AbortedEntry
from kbroker.storage.segments.descriptors import Descriptors, LazyFile
from kbroker.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY, Index
from kbroker.storage.segments.segment import Segment


class Damage(NamedTuple):
    """Bytes that are no valid batch, from one batch boundary to the next that is known.

    There may be none: then batches are missing before the one at `end`, which may be in the next segment.
    """

    start: int
    end: int
    next_offset: int  # of the batch at `end`


class FileSegment(Segment):
    __slots__ = (
        "_aborted",
        "_aborted_on_disk",
        "_bytes_since_index_entry",
        "_descriptors",
        "_failed",
        "_files",
        "_index_interval_bytes",
        "_last_time_entry",
        "_suffix",
        "_tail_timestamp",
        "_timestamps_known",
        "corrupt",
        "directory",
        "file",
        "index",
        "time_index",
    )

    def __init__(
        self,
        files: Files,
        descriptors: Descriptors,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        index_interval_bytes: int,
        failed: Callable[[OSError], StorageError],
        roll_jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        super().__init__(base_offset, created_ms, roll_jitter_ms)
        self._files = files
        self._descriptors = descriptors
        self._failed = failed  # makes of an I/O error what the log says of it
        self._index_interval_bytes = index_interval_bytes
        self._bytes_since_index_entry = 0
        self._last_time_entry = -1
        self._timestamps_known = True
        self._tail_timestamp = (-1, base_offset)  # the largest behind the last index entry; its offset
        self._aborted: list[AbortedEntry] | None = []
        self._aborted_on_disk = 0
        self.corrupt: list[Damage] = []
        self.directory = directory
        self._suffix = suffix
        self.file = LazyFile(names.segment_file(directory, base_offset, names.LOG + suffix))
        index = names.segment_file(directory, base_offset, names.INDEX + suffix)
        time_index = names.segment_file(directory, base_offset, names.TIME_INDEX + suffix)
        self.index = Index(files, descriptors, index, OFFSET_ENTRY)
        self.time_index = Index(files, descriptors, time_index, TIME_ENTRY)

    def __repr__(self) -> str:
        return f"<FileSegment {self.file.path} {self.size_bytes} bytes>"

    def on_failure(self, failed: Callable[[OSError], StorageError]) -> None:
        self._failed = failed

    def paths(self) -> list[str]:
        """Of the files that a segment may have."""
        return [
            names.segment_file(self.directory, self.base_offset, suffix + self._suffix)
            for suffix in names.SEGMENT_SUFFIXES
        ]

    @property
    def handle(self) -> OpenFile:
        file = self.file
        file.touched = True
        return file.handle or self._descriptors.open(file)

    def create(self) -> None:
        """Make the `.log` file, empty."""
        try:
            handle = self._descriptors.open(self.file, create=True)
            if self._files.size(handle):
                self._files.truncate(handle, 0)
        except OSError as error:
            raise self._failed(error) from error

    # appending

    def append(self, batch: memoryview, size: int, last_offset: int, timestamp: int) -> None:
        position = self.size_bytes
        file = self.file
        file.touched = True
        try:
            handle = file.handle or self._descriptors.open(file)
            written = self._files.write_at(handle, batch, position)
            if written != size:
                self._files.write_all(handle, batch[written:], position + written)
        except OSError as error:
            raise self._cut_torn(position, error) from error
        self.size_bytes = position + size
        self.note_batch(position, size, last_offset, timestamp)

    def append_run(
        self, batches: Sequence[memoryview], last_offsets: Sequence[int], timestamps: Sequence[int]
    ) -> None:
        position = start = self.size_bytes
        file = self.file
        file.touched = True
        try:
            handle = file.handle or self._descriptors.open(file)
            written = self._files.write_many_at(handle, batches, start)
            position += sum(map(len, batches))
            if written != position - start:
                self._files.write_all(handle, b"".join(batches)[written:], start + written)
        except OSError as error:
            raise self._cut_torn(start, error) from error
        self.size_bytes = position
        note = self.note_batch
        for size, last_offset, timestamp in zip(map(len, batches), last_offsets, timestamps, strict=True):
            note(start, size, last_offset, timestamp)
            start += size

    def note_batch(self, position: int, size: int, last_offset: int, timestamp: int) -> None:
        """Remember a batch that stands in the `.log`: timestamps and index entries."""
        if not position:
            self.first_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self.index.append(last_offset - self.base_offset, position)
            self._add_time_entry()
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size

    def note_damage(self, damage: Damage) -> None:
        """An index entry for the batch behind it: who looks for that need not pass over the damage."""
        if damage not in self.corrupt:
            self.corrupt.append(damage)
        if damage.end < self.size_bytes:
            self.index.append(damage.next_offset - self.base_offset, damage.end)
            self._bytes_since_index_entry = 0

    def note_timestamp(self, header: BatchHeader) -> None:
        """Of a batch that stands in the `.log` behind the last index entry: the time index may be wrong."""
        self._tail_timestamp = max(self._tail_timestamp, (header.max_timestamp, header.last_offset))
        if self._timestamps_known and header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = header.last_offset

    def _add_time_entry(self) -> None:
        if self.max_timestamp > self._last_time_entry:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            self._last_time_entry = self.max_timestamp

    def _cut_torn(self, position: int, error: OSError) -> StorageError:
        """A write failed: whatever of it reached the file is cut off again."""
        try:
            if self.file.handle is not None:
                self._files.truncate(self.file.handle, position)
        except OSError as worse:
            return self._failed(OSError(worse.errno, f"torn bytes of a failed write remain: {worse}"))
        return self._failed(error)

    def indexes_full(self, config: LogConfig, batches: int) -> bool:
        limit = config.segment_index_bytes
        # Every entry of the time index came with one of the offset index: mostly that one tells enough.
        if (len(self.index) + batches + 1) * TIME_ENTRY.size <= limit:
            return False
        return (
            self.index.size_bytes + batches * OFFSET_ENTRY.size > limit
            or self.time_index.size_bytes + (batches + 1) * TIME_ENTRY.size > limit
        )

    # facts that are only loaded when asked for

    def forget_timestamps(self) -> None:
        """The segment was not read: its timestamps come from its files when they are asked for."""
        self._timestamps_known = False
        self.first_timestamp = self.max_timestamp = self._last_time_entry = -1
        self.max_timestamp_offset = self.base_offset
        self._tail_timestamp = (-1, self.base_offset)

    def load_timestamps(self) -> None:
        """Take the largest timestamp from the time index, the first from the first batch."""
        if self._timestamps_known:
            return
        try:
            last = self.time_index.last(wait=True)
            start = (
                b""
                if self.size_bytes < BATCH_OVERHEAD
                else self._files.read_at(self.handle, BATCH_OVERHEAD, 0)
            )
        except OSError as error:
            raise self._failed(error) from error
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last[0], last[1] + self.base_offset
            self._last_time_entry = self.max_timestamp
        if self._tail_timestamp[0] > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = self._tail_timestamp
        if start:
            self.first_timestamp = read_header(start).max_timestamp
        self._timestamps_known = True

    def largest_timestamp(self) -> int:
        self.load_timestamps()
        return super().largest_timestamp()

    def rolling_timestamp(self) -> int:
        self.load_timestamps()
        return super().rolling_timestamp()

    def last_modified_ms(self) -> int:
        return self._files.modified_ms(self.file.path)

    # aborted transactions

    @property
    def _transaction_index_path(self) -> str:
        return names.segment_file(self.directory, self.base_offset, names.TRANSACTION_INDEX + self._suffix)

    def use_disk(self, size_bytes: int, index_entries: int, time_index_entries: int) -> None:
        """Files that somebody else wrote hold this much; timestamps come from them when asked for."""
        self.size_bytes = size_bytes
        self.index.use_disk(index_entries)
        self.time_index.use_disk(time_index_entries)
        self.forget_timestamps()

    def expect_aborted_on_disk(self) -> None:
        """The segment has a `.txnindex`, to be read when it is asked for."""
        self._aborted = None

    def reset_aborted(self) -> None:
        """What the `.txnindex` holds does not count."""
        self._aborted = []
        self._files.unlink_if_exists(self._transaction_index_path)
        self._aborted_on_disk = 0

    def aborted(self) -> Sequence[AbortedEntry]:
        if self._aborted is None:
            try:
                data = self._files.read_bytes(self._transaction_index_path)
            except OSError as error:
                raise self._failed(error) from error
            self._aborted = transaction_index.decode(data)
            self._aborted_on_disk = len(self._aborted)
        return self._aborted

    def add_aborted(self, entry: AbortedEntry) -> None:
        self.aborted()
        assert self._aborted is not None
        self._aborted.append(entry)

    def truncate_aborted(self, offset: int) -> None:
        """Drop the transactions whose marker is at or above `offset`."""
        kept = [entry for entry in self.aborted() if entry.last_offset < offset]  # the first few
        if len(kept) < self._aborted_on_disk:
            file = self._files.open(self._transaction_index_path, write=True)
            try:
                self._files.truncate(file, len(kept) * ENTRY_BYTES)
            finally:
                file.close()
            self._aborted_on_disk = len(kept)
        self._aborted = kept

    # files

    def persist(self) -> list[str]:
        """Write what follows from the `.log` so far beside it; returns the changed files."""
        changed = [index.file.path for index in (self.index, self.time_index) if index.persist()]
        return changed + self._persist_aborted()

    def complete(self) -> list[str]:
        """The same of a segment that ends or is closed: its largest timestamp goes into the time index."""
        if self._timestamps_known:
            self._add_time_entry()
        changed = [index.file.path for index in (self.index, self.time_index) if index.complete()]
        return changed + self._persist_aborted()

    def _persist_aborted(self) -> list[str]:
        if self._aborted is not None and len(self._aborted) > self._aborted_on_disk:
            self._append_aborted(self._aborted[self._aborted_on_disk :])
            return [self._transaction_index_path]
        return []

    def _append_aborted(self, entries: list[AbortedEntry]) -> None:
        """Behind those that are there, which a disk without room must not take along."""
        file = self._files.open(self._transaction_index_path, write=True, create=True)
        try:
            start = self._aborted_on_disk * ENTRY_BYTES
            self._files.truncate(file, start)
            self._files.write_all(file, transaction_index.encode(entries), start)
        finally:
            file.close()
        self._aborted_on_disk += len(entries)

    def truncate_to_position(self, position: int, end_offset: int) -> None:
        """Cut the `.log` at `position`, where `end_offset` would follow, and the indexes with it."""
        self.load_timestamps()
        self._files.truncate(self.handle, position)
        self.size_bytes = position
        relative = max(end_offset - self.base_offset, 0)
        self.index.truncate(min(self.index.count_below(0, relative), self.index.count_below(1, position)))
        self.time_index.truncate(self.time_index.count_below(1, relative))
        self.truncate_aborted(end_offset)
        self._bytes_since_index_entry = 0
        self.corrupt = [damage for damage in self.corrupt if damage.end <= position]
        last = self.time_index.last(wait=True)
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last[0], last[1] + self.base_offset
        self._last_time_entry = self.max_timestamp
        if not position:
            self.first_timestamp = -1

    def close(self) -> None:
        for file in (self.file, self.index.file, self.time_index.file):
            self._descriptors.close(file)

    @property
    def given_up(self) -> bool:
        """No part of the log any more."""
        return self._suffix == names.DELETED

    def remove_files(self, *suffixes: str) -> None:
        """Remove the files with these suffixes, in this order."""
        self.close()
        for suffix in suffixes:
            for kind in names.SEGMENT_SUFFIXES:
                self._files.unlink_if_exists(
                    names.segment_file(self.directory, self.base_offset, kind + suffix)
                )

    def rename_suffix(self, old: str, new: str) -> list[str]:
        """Rename the files, for deletion or after compaction; returns the new paths of those there are."""
        self.close()
        renamed = []
        for suffix in names.SEGMENT_SUFFIXES:
            source = names.segment_file(self.directory, self.base_offset, suffix + old)
            target = names.segment_file(self.directory, self.base_offset, suffix + new)
            if self._files.exists(source):
                self._files.rename(source, target)
                renamed.append(target)
        self._suffix = new
        self.file.path = names.segment_file(self.directory, self.base_offset, names.LOG + new)
        self.index.file.path = names.segment_file(self.directory, self.base_offset, names.INDEX + new)
        self.time_index.file.path = names.segment_file(
            self.directory, self.base_offset, names.TIME_INDEX + new
        )
        return renamed
