"""What there is in the directory of a partition: its segments, epochs and snapshots, and where it starts.

Nothing of the log is read. What a crash left half done is settled; where the file of a segment is missing
that was there, an empty one takes its place, so that what is gone shows in the chain of segments.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from kbroker.storage import names
from kbroker.storage.compaction import leftovers
from kbroker.storage.errors import StorageError
from kbroker.storage.files import TEMPORARY_SUFFIX, Files
from kbroker.storage.partition import leader_epochs
from kbroker.storage.partition.leader_epochs import LeaderEpochs
from kbroker.storage.partition.snapshots import Snapshots
from kbroker.storage.segments.descriptors import Descriptors
from kbroker.storage.segments.file_segment import FileSegment
from kbroker.storage.segments.index import Index

logger = logging.getLogger("kbroker.storage")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What the checkpoints say of a partition; None: nothing."""

    clean: bool
    all_written: bool  # nothing that was written can be missing: the machine did not go down
    recovery_point: int | None
    high_watermark: int | None
    log_start_offset: int | None
    compacted_offset: int  # below it offsets may be missing
    now_ms: int
    producer_id_expiration_ms: int
    index_interval_bytes: int

    @property
    def ends(self) -> set[int]:
        """Where the log ends, if it was closed, says each witness that there is."""
        return {end for end in (self.recovery_point, self.high_watermark) if end is not None}


class PartitionFiles:
    def __init__(
        self,
        files: Files,
        descriptors: Descriptors,
        directory: str,
        options: LoadOptions,
        failed: Callable[[OSError], StorageError],
    ) -> None:
        self.segments: list[FileSegment] = []
        self.epochs = LeaderEpochs()
        self.epochs_known = False  # their checkpoint could be read
        self.snapshots = Snapshots(files, directory)
        self._files = files
        self._descriptors = descriptors
        self._directory = directory
        self._options = options
        self._failed = failed
        self._name = os.path.basename(directory)
        self._given_up: set[int] = set()  # the segments that were being deleted

    def look(self) -> None:
        present = self._present_files()
        self.segments = self._make_segments(present)
        self.epochs = self._read_epochs(present)
        self.snapshots = Snapshots(self._files, self._directory, present)

    def find_start(self) -> int:
        """The log start offset, of which the checkpoint, the epochs and the first segment are witnesses."""
        segments, known = self.segments, self._options.log_start_offset
        first = segments[0].base_offset if segments else None
        entries = self.epochs.entries()
        oldest = entries[0][1] if entries else None
        if known is None:
            return first or 0
        if known > max(self._options.ends, default=known):
            logger.error("%s: it cannot start at offset %d, behind its end", self._name, known)
            known = first or 0
        elif self._options.clean and oldest is not None and first is not None and first <= oldest < known:
            logger.error("%s: it starts at %d or at %d: taken to be the lower", self._name, known, oldest)
            known = oldest
        if first is None or known >= first:
            return known
        if (self._given_up and not self._options.clean) or (oldest is not None and oldest >= first):
            return first  # the checkpoint had not heard of it
        segments.insert(0, self.empty_segment(known))
        return known

    def _present_files(self) -> dict[str, int]:
        """The files and their sizes, once what a crash left half done is settled."""
        present = self._files.sizes(self._directory)
        for name in sorted(present):
            if name.endswith((names.DELETED, TEMPORARY_SUFFIX)):
                given_up = names.offset_of(name, names.LOG + names.DELETED)
                self._given_up |= set() if given_up is None else {given_up}
                self.remove(name)
                del present[name]
        if any(name.endswith((names.CLEANED, names.SWAP)) for name in present):
            leftovers.settle(self._files, self._directory, set(present))
            present = self._files.sizes(self._directory)
        return present

    def _make_segments(self, present: dict[str, int]) -> list[FileSegment]:
        offsets = sorted(
            offset for name in present if (offset := names.offset_of(name, names.LOG)) is not None
        )
        segments = []
        for base_offset in offsets:
            segment = self._segment(base_offset)
            stem = f"{base_offset:020d}"
            segment.size_bytes = present[stem + names.LOG]
            for index, suffix in ((segment.index, names.INDEX), (segment.time_index, names.TIME_INDEX)):
                index.use_disk(present.get(stem + suffix, 0) // index.entry_bytes)
            if stem + names.TRANSACTION_INDEX in present:
                segment.expect_aborted_on_disk()
            segment.forget_timestamps()
            segments.append(segment)
        if segments:
            # Kafka's active segment has indexes that end in zeros.
            _drop_zeros(segments[-1].index, column=1)
            _drop_zeros(segments[-1].time_index, column=0)
        orphans = set()
        for name in present:
            for suffix in (names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX):
                offset = names.offset_of(name, suffix)
                if offset is not None and f"{offset:020d}{names.LOG}" not in present:
                    logger.warning("%s: removing %s, which has no log file", self._name, name)
                    self.remove(name)
                    orphans.add(offset)
        if self._options.all_written:
            # Nobody removes a log file before its indexes: it was there.
            for offset in orphans - self._given_up:
                if segments and offset < segments[-1].base_offset:
                    segments.append(self.empty_segment(offset))
        return sorted(segments, key=lambda segment: segment.base_offset)

    def _segment(self, base_offset: int) -> FileSegment:
        return FileSegment(
            self._files,
            self._descriptors,
            self._directory,
            base_offset,
            created_ms=self._options.now_ms,
            index_interval_bytes=self._options.index_interval_bytes,
            failed=self._failed,
        )

    def empty_segment(self, base_offset: int) -> FileSegment:
        """So that what is missing from there on shows in the chain of segments."""
        segment = self._segment(base_offset)
        segment.create()
        segment.complete()
        return segment

    def _read_epochs(self, present: dict[str, int]) -> LeaderEpochs:
        if names.LEADER_EPOCHS in present:
            data = self._files.read_bytes(os.path.join(self._directory, names.LEADER_EPOCHS))
            try:
                epochs = leader_epochs.decode(data)
                self.epochs_known = True
                return epochs
            except ValueError as error:
                logger.warning("%s: the leader epoch checkpoint is unreadable: %s", self._name, error)
        return LeaderEpochs()

    def remove(self, name: str) -> None:
        self._files.unlink_if_exists(os.path.join(self._directory, name))


def _drop_zeros(index: Index, column: int) -> None:
    """Entries of zeros at the end of an index file are none."""
    last = index.last(wait=True)
    if last is None or last[column]:
        return
    low, high = 0, len(index)
    while low < high:
        middle = (low + high) // 2
        entry = index.entry(middle)
        if entry is not None and entry[column]:
            low = middle + 1
        else:
            high = middle
    index.use_disk(low)
