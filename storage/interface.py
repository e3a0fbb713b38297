"""What the server sees of a partition log and of a data directory, whatever they are stored in.

All methods are called on one thread. A method whose result may need a disk that is not in the page cache
answers with a value or with a Pending that is settled on that same thread.

Offsets of a log, always: log_start_offset ≤ last_stable_offset ≤ high_watermark ≤ log_end_offset.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from kbroker.pending import Pending
from kbroker.protocol.records import BatchHeader
from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.storage.compaction.jobs import CompactionStats
    from kbroker.storage.counts import DirectoryCounts, LogCounts
    from kbroker.storage.segments.file_range import FileRange

Buffer = bytes | bytearray | memoryview


class Assigned(NamedTuple):
    """What a log knows of a batch once it has given it offsets."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1: the timestamps are the producer's (CreateTime)
    log_start_offset: int


class Appended(NamedTuple):
    base_offset: int  # -1: the batch has its place behind all before it, but its offsets are not known yet
    last_offset: int
    log_append_time_ms: int  # -1: the timestamps are the producer's (CreateTime)
    log_start_offset: int
    duplicate: bool  # the batch was there already: base_offset and last_offset are those of the first time
    # None: may be acknowledged now; else when resolved, never when failed. Offsets that were not known come
    # with it; what is not known either until then, such as a sequence number out of order, fails it.
    durable: Pending[Assigned | None] | None


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class Slice(NamedTuple):
    """Whole batches, in order. The first may begin before the offset that was asked for."""

    buffers: Sequence[Buffer | FileRange]  # FileRanges only where they are asked for
    size_bytes: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction]  # only for a committed read: what a consumer must skip
    next_offset: int  # where a reader that takes all of it goes on

    @property
    def data(self) -> bytes:
        """All bytes; for who has not asked for FileRanges."""
        return b"".join(cast("Sequence[Buffer]", self.buffers))


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int  # -1: unknown


class EpochEndOffset(NamedTuple):
    """The end offset of the largest epoch at or below the requested one; (-1, -1) when undefined."""

    leader_epoch: int
    end_offset: int


class ProducerState(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int  # -1: no open transaction


class TakesLong(Exception):
    """What a batch holds must be looked into, and that is much: it is to be appended in steps."""


# Steps that look into a batch: None is a pause, in which others may have a turn; a function does what takes
# the processor long without Python (codecs), given the most bytes that it may make: its result is sent back.
# DecompressedTooLarge: it would make more.
LongCheck = Generator[Callable[[int], bytes] | None, bytes, tuple[memoryview, BatchHeader]]
LongAppend = Generator[Callable[[int], bytes] | None, bytes, Appended]


class LogTrace(Protocol):
    """Told what happens to the records of a log whose topic is traced. It notes that, and never raises."""

    def begin_ns(self) -> int:
        """What time it is."""
        ...

    def appended(
        self,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        times: tuple[int, int],
        durable: Pending[Assigned | None] | None,
    ) -> None:
        """`times`: when the batch was received, in ms, and when storing it began, in ns. It is copied."""
        ...

    def happened(self, event: str, first: int, last: int, attributes: dict[str, str | int]) -> None:
        """To those records that are sampled; which events there are stands in kbroker.observability."""
        ...


class Log(Protocol):
    """One partition. Raises the exceptions of kbroker.storage.errors and kbroker.protocol.records."""

    config: LogConfig
    trace: LogTrace | None
    """None: the topic is not traced."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def latest_epoch(self) -> int:
        """The epoch of the last appended batch; -1 for an empty history."""
        ...

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def segment_count(self) -> int: ...
    @property
    def counts(self) -> LogCounts: ...
    @property
    def shows_at_once(self) -> bool:
        """Whether what is appended lies below the high watermark when the append returns."""
        ...

    def refresh(self) -> Pending[None] | None:
        """Let offsets, epochs and producers be what they are now; None: they are.

        Whoever answers with them asks for this first. A log that others append to knows them only by asking.
        """
        ...

    def set_leader_epoch(self, leader_epoch: int) -> None:
        """The epoch that the next appended batches carry; never below an earlier one."""
        ...

    def append_as_leader(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> Appended:
        """Validate, give offsets to and append one v2 batch of a client.

        Patches `records` in place and keeps nothing of it. Raises TakesLong, and nothing has happened, if
        `append_in_steps` is the way.

        `expected_offset`: the batch is appended only if it gets this base offset, else UnexpectedOffset is
        raised and nothing has happened. That is decided where offsets are given, with nothing in between: a
        log that gives them later must take the expectation along, and fails `durable` with it. A duplicate
        is none the less a duplicate.
        """
        ...

    def append_in_steps(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> LongAppend:
        """The same for one batch that takes long to look into; `records` must stay as they are meanwhile."""
        ...

    def append_control(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Appended:
        """Append a transaction marker, ending the producer's open transaction here (if there is one)."""
        ...

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        min_one: bool = True,
        sendable: bool = False,
        unread: bool = False,
    ) -> Slice | Pending[Slice]:
        """Whole batches from the one that holds `offset`, up to max_bytes, below the high watermark.

        `committed`: below the last stable offset, with the aborted transactions in the range.
        `min_one`: the first batch is returned even if it alone is larger than max_bytes.
        `sendable`: what comes from the disk need not be read, only be ready to be sent.
        `unread`: then nothing is read that need not be, so that it takes no memory while it waits to be sent.
        """
        ...

    def offset_for_timestamp(
        self, timestamp: int
    ) -> TimestampOffset | Pending[TimestampOffset | None] | None:
        """The first record whose timestamp is at or above `timestamp`."""
        ...

    def max_timestamp_offset(self) -> TimestampOffset | Pending[TimestampOffset | None] | None:
        """The (first) record with the largest timestamp."""
        ...

    def timestamp_of(self, offset: int) -> int | Pending[int]:
        """The largest timestamp of the batch that holds this offset, which is below the high watermark."""
        ...

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset: ...

    def delete_records_before(self, offset: int) -> int | Pending[int]:
        """Raise the log start offset to `offset`, at most to the high watermark; returns the log start."""
        ...

    def producers(self) -> list[ProducerState] | Pending[list[ProducerState]]: ...

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether this producer, at this epoch, has an open transaction in this log.

        What was appended counts, whether it has its offsets yet or not; so it does for `has_batches_of`.
        """
        ...

    def has_batches_of(self, producer_id: int) -> bool:
        """Whether there are batches of this producer, at its last epoch, to compare sequences with."""
        ...

    def close(self) -> None: ...

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Called whenever high watermark, last stable offset or log start moved, or the log was deleted or
        fenced.

        Returns the function that ends it. A callback must not raise.
        """
        ...


class LocalLog(Log, Protocol):
    """A log on this machine: it gives offsets when it is called, and knows all that is known of it."""

    def append_run(self, batches: Sequence[memoryview], now_ms: int) -> list[int] | None:
        """Append batches that came together, each as `append_as_leader` would, but in one write.

        Returns their base offsets. None: nothing has happened, they are to be appended one by one. That is so
        if any of them is not usual: refused, changed, a duplicate, or too much for the segment or the disk.
        """
        ...

    def flush(self) -> Pending[None]:
        """Everything appended so far, on disk."""
        ...


class WantedRead(NamedTuple):
    """One partition of a Fetch."""

    log: Log
    offset: int
    max_bytes: int


class PartitionSize(NamedTuple):
    topic: str
    partition: int
    size_bytes: int


class Image(Protocol):
    """All logs as they were at one moment, in a directory of files that do not change (storage/image.py)."""

    @property
    def path(self) -> str: ...

    def finish(self) -> Pending[int]:
        """Resolved with the number of partitions when it is there. What fails leaves a part of it behind."""
        ...


class Directory(Protocol):
    """One data directory full of logs."""

    # How to treat a partition that nobody has asked for since the start (retention, compaction): the config
    # of its topic; None: not known, and such a partition is left alone.
    config_source: Callable[[str], LogConfig | None] | None

    @property
    def path(self) -> str: ...
    @property
    def clean_start(self) -> bool:
        """False: the last user of this directory did not close it (leader epochs must be raised)."""
        ...

    def log(self, topic_id: bytes, topic: str, partition: int, config: LogConfig, leader_epoch: int) -> Log:
        """The log of a partition, made or opened at first use, then always the same object."""
        ...

    @property
    def judges_transactions(self) -> bool:
        """Whether a log itself admits transactional batches: the coordinator is then not asked before."""
        ...

    def prepare_reads(
        self, wanted: Callable[[], Iterator[WantedRead]], max_bytes: int
    ) -> Pending[None] | None:
        """Get at once what the reads of one Fetch need, up to `max_bytes`; None: they may begin.

        `wanted` tells which they are; a directory that prepares nothing does not ask.
        What cannot be got is no failure here but of the read that needs it.
        """
        ...

    def hold_appends(self, reason: StorageError | None) -> None:
        """Refuse appends to any log for this reason, or take them again; reading and deleting go on."""
        ...

    @property
    def held(self) -> StorageError | None:
        """Why appends are refused to all logs; None: they are not."""
        ...

    def check_writable(self) -> Pending[None]:
        """Fails with OSError if the volume takes no new file."""
        ...

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Log start and log end offset; cheap, also for a log that is not open. (0, 0): nothing there."""
        ...

    def delete_partition(self, topic: str, partition: int, topic_id: bytes) -> None:
        """The log is gone from now on; its files follow after file.delete.delay.ms."""
        ...

    def partitions(self) -> list[tuple[str, int]]:
        """Every partition that has a directory."""
        ...

    def missing(self) -> list[tuple[str, int]]:
        """Partitions that had records at the last checkpoint, and have no directory.

        Of each it must be said whether a topic has it (`restore`) or not (`forget`).
        """
        ...

    def restore(self, topic: str, partition: int) -> None:
        """A missing partition is one of a topic's: it goes on behind what is lost."""
        ...

    def forget(self, topic: str, partition: int) -> None:
        """A missing partition was deleted."""
        ...

    def sizes(self) -> Iterator[PartitionSize]: ...

    def size_of(self, topic: str, partition: int) -> int:
        """Of one partition; 0: nothing there."""
        ...

    @property
    def counts(self) -> DirectoryCounts: ...
    @property
    def compaction(self) -> CompactionStats:
        """What was compacted since the start."""
        ...

    @property
    def descriptors(self) -> int:
        """How many files of logs may be open at a time: connections leave as many to it."""
        ...

    def total_bytes(self) -> int:
        """Of the volume; -1: not known."""
        ...

    def usable_bytes(self) -> int: ...

    def begin_image(self, name: str) -> Image:
        """What a copy can be made of while appends go on: all logs as they are now.

        Raises StorageError where there are no files, or one is being made.
        """
        ...

    def remove_image(self, name: str) -> Pending[None]: ...

    def reconfigure(self, settings: DirectoryConfig) -> None:
        """From now on these hold."""
        ...

    def tick(self, now_ms: int) -> None:
        """Do what is due: flush, roll, retention, delayed deletes, checkpoints, compaction."""
        ...

    def next_deadline(self) -> int:
        """When tick has something to do again, in ms on the same clock."""
        ...

    def close(self) -> None:
        """Clean stop: everything flushed, checkpoints and the clean-shutdown mark written."""
        ...
