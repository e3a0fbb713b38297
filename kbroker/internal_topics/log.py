"""A partition of an internal topic: a log in memory that the broker alone writes, filled when it is read.

Its offsets begin at the microsecond at which it was emptied last, so that no offset comes twice in the life
of the topic: a reader that comes back with one of an earlier filling gets OFFSET_OUT_OF_RANGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from kbroker.pending import Pending, after
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import Record, build_batch, read_header
from kbroker.storage.config import COMPACT, MAX_LONG, LogConfig
from kbroker.storage.memory import MemoryLog, MemorySegment
from kbroker.storage.partition.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from kbroker.internal_topics.topic import InternalTopic
    from kbroker.storage.interface import Appended, LongAppend, Slice, TimestampOffset

SEGMENT_BYTES = 1024 * 1024
_BATCH_BYTES = 64 * 1024


class InternalLog(MemoryLog):
    def __init__(
        self, topic: InternalTopic, partition: int, topic_id: bytes, config: LogConfig, leader_epoch: int
    ) -> None:
        super().__init__(topic.name, partition, topic_id, config, leader_epoch)
        self._owner = topic

    def __repr__(self) -> str:
        return f"<InternalLog {self.topic}-{self.partition}>"

    def _config_changed(self) -> None:
        """What fills it decides how it is kept, whatever the topic's configs say."""
        self._config = replace(
            self._config,
            segment_bytes=SEGMENT_BYTES,
            segment_ms=MAX_LONG,
            cleanup_policy=frozenset((COMPACT,)),
            max_message_bytes=2**31 - 1,
        )
        self._segment_bytes = SEGMENT_BYTES

    # filled and emptied

    def empty(self, base_offset: int) -> None:
        """Hold nothing, and go on at this offset."""
        self._segments = [MemorySegment(base_offset, 0)]
        self._epochs = LeaderEpochs()
        self.log_start_offset = self.log_end_offset = base_offset
        self.first_dirty_offset = None
        self._commit_up_to(base_offset)

    def write(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int) -> None:
        """Append keys and values, as few batches as it takes."""
        part: list[Record] = []
        size = 0
        for key, value in records:
            part.append(Record(now_ms, key, value))
            size += len(key) + len(value or b"")
            if size >= _BATCH_BYTES:
                self._write(part, now_ms)
                part, size = [], 0
        if part:
            self._write(part, now_ms)

    def _write(self, records: Sequence[Record], now_ms: int) -> None:
        batch = memoryview(bytearray(build_batch(records)))
        self._segment_bytes = max(SEGMENT_BYTES, len(batch))
        self._append_checked(batch, read_header(batch), now_ms)

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    # read

    def refresh(self) -> Pending[None] | None:  # type: ignore[override]
        return self._owner.filled()

    def read(  # type: ignore[override]
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        min_one: bool = True,
        sendable: bool = False,
        unread: bool = False,
    ) -> Slice | Pending[Slice]:
        def read(_: object = None) -> Slice:
            return super(InternalLog, self).read(offset, max_bytes, committed=committed, min_one=min_one)

        filled = self._owner.filled()
        return read() if filled is None else after(filled, read)

    def offset_for_timestamp(  # type: ignore[override]
        self, timestamp: int
    ) -> TimestampOffset | Pending[TimestampOffset | None] | None:
        def find(_: object = None) -> TimestampOffset | None:
            return super(InternalLog, self).offset_for_timestamp(timestamp)

        filled = self._owner.filled()
        return find() if filled is None else after(filled, find)

    # written by nobody else

    def append_as_leader(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> Appended:
        self._refuse_write()

    def append_in_steps(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> LongAppend:
        self._refuse_write()

    def append_run(self, batches: Sequence[memoryview], now_ms: int) -> list[int] | None:
        self._refuse_write()

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
        self._refuse_write()

    def delete_records_before(self, offset: int) -> int:
        self._refuse_write()

    def _refuse_write(self) -> NoReturn:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{self.topic} is written by the broker alone.")
