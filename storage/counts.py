"""What logs and their directory count of their work, in plain numbers, for who looks from outside.

What can be told from a log's offsets and sizes is not counted: how much was appended follows from where the
log began and what it gave up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.times import Times

if TYPE_CHECKING:
    from kbroker.storage.interface import Log


class LogCounts:
    """Of one log, since it was opened."""

    __slots__ = (
        "appends",
        "deleted_bytes",
        "deleted_segments",
        "fetched_bytes",
        "fetches",
        "first_bytes",
        "first_offset",
        "gone_bytes",
    )

    def __init__(self) -> None:
        self.first_offset = 0
        """The log end offset when the log was opened."""
        self.first_bytes = 0
        """Its size then."""
        self.gone_bytes = 0
        """Of segments that retention deleted and that compaction made smaller."""
        self.appends = 0
        """Batches."""
        self.deleted_segments = 0
        self.deleted_bytes = 0
        self.fetches = 0
        """Those by clients of Kafka's protocol that got records."""
        self.fetched_bytes = 0


class LogTotals:
    """Of several logs."""

    __slots__ = (
        "appends",
        "bytes_in",
        "deleted_bytes",
        "deleted_segments",
        "fetched_bytes",
        "fetches",
        "records",
        "segments",
        "size_bytes",
    )

    def __init__(self) -> None:
        self.records = 0
        self.bytes_in = 0
        self.appends = 0
        self.fetches = 0
        self.fetched_bytes = 0
        self.deleted_segments = 0
        self.deleted_bytes = 0
        self.segments = 0
        self.size_bytes = 0

    def add(self, log: Log) -> None:
        """What it has now, and what it did."""
        self.segments += log.segment_count
        self.size_bytes += log.size_bytes
        self.add_work(log)

    def add_work(self, log: Log) -> None:
        """Only what it did."""
        counts = log.counts
        self.records += log.log_end_offset - counts.first_offset
        self.bytes_in += log.size_bytes + counts.gone_bytes - counts.first_bytes
        self.appends += counts.appends
        self.fetches += counts.fetches
        self.fetched_bytes += counts.fetched_bytes
        self.deleted_segments += counts.deleted_segments
        self.deleted_bytes += counts.deleted_bytes

    def add_all(self, other: LogTotals) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class DirectoryCounts:
    """Of a data directory, since its start."""

    __slots__ = ("cold_reads", "syncs")

    def __init__(self) -> None:
        self.syncs = Times()
        """Forcing logs to the disk: one, or many at once."""
        self.cold_reads = Times()
        """Reads that the page cache did not have: until a worker had loaded them."""
