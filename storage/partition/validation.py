"""What a topic's configs ask of a producer's batch beyond its being intact, and what they change in it.

    message.timestamp.type          LogAppendTime stamps the batch; CreateTime holds it to the bounds below
    message.timestamp.before/after  every record's CreateTime lies within them (without a timestamp: always)
    compression.type                another codec than the topic's is compressed again
    cleanup.policy=compact          every record has a key
    kbroker.validate.records        every record is well formed, not only the batch's header and checksum
    max.message.bytes               the size of the batch, also after compressing it again

A batch that none of these concern is never decompressed: `BatchRules.plain` says so for a config. What a
batch hides is not known before: one that turns out to be large is looked into in steps (`LongCheck`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import cast

from kbroker.protocol.records import (
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    DecompressedTooLarge,
    InvalidRecord,
    compression,
    iter_payload,
    payload_of,
    read_header,
    replace_payload,
    stamp_append_time,
    stamp_create_time,
)
from kbroker.storage.config import LOG_APPEND_TIME, MAX_LONG, LogConfig
from kbroker.storage.errors import InvalidTimestamp, RecordTooLarge
from kbroker.storage.interface import LongCheck, TakesLong

_AT_ONCE_BYTES = 64 * 1024  # of decompressed records
_AT_ONCE_RECORDS = 1000
_PER_STEP = 256  # records, from one pause to the next


class BatchRules:
    """The rules of one LogConfig."""

    __slots__ = (
        "_after_ms",
        "_before_ms",
        "_codec",
        "_compact",
        "_level",
        "_validate",
        "append_time",
        "max_bytes",
        "plain",
    )

    def __init__(self, config: LogConfig) -> None:
        self.append_time = config.message_timestamp_type == LOG_APPEND_TIME
        self.max_bytes = config.max_message_bytes
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = config.message_timestamp_after_max_ms
        self._compact = config.compact
        self._validate = config.validate_records
        self._codec = target_codec(config.compression_type)
        levels = {
            compression.GZIP: config.compression_gzip_level,
            compression.LZ4: config.compression_lz4_level,
            compression.ZSTD: config.compression_zstd_level,
        }
        self._level = None if self._codec is None else levels.get(self._codec)
        self.plain = not (
            self.append_time
            or self._compact
            or self._validate
            or self._codec is not None
            or self._before_ms != MAX_LONG
        )

    def concern(self, header: BatchHeader, now_ms: int) -> bool:
        """Whether `apply` has anything to look at or to change."""
        return header.attributes & LOG_APPEND_TIME_BIT != 0 or self.concern_time(header.max_timestamp, now_ms)

    def concern_time(self, timestamp: int, now_ms: int) -> bool:
        """The same of batches of CreateTime, of which this is the largest timestamp."""
        return not self.plain or timestamp - now_ms > self._after_ms

    def apply(self, batch: memoryview, header: BatchHeader, now_ms: int) -> tuple[memoryview, BatchHeader]:
        """The batch as it is to be appended: patched in place, or a new one. TakesLong: see `applying`."""
        if header.record_count > _AT_ONCE_RECORDS:
            raise TakesLong
        steps = self.applying(batch, header, now_ms)
        try:
            work = next(steps)
            while True:
                work = steps.send(b"" if work is None else work(_AT_ONCE_BYTES))
        except StopIteration as end:
            return cast("tuple[memoryview, BatchHeader]", end.value)
        except DecompressedTooLarge:
            raise TakesLong from None

    def applying(self, batch: memoryview, header: BatchHeader, now_ms: int) -> LongCheck:
        """The same in steps, for a batch that is large or hides much."""
        if header.attributes & LOG_APPEND_TIME_BIT:
            if self.append_time or header.max_timestamp == NO_TIMESTAMP:
                raise InvalidTimestamp(
                    "a producer does not set the timestamp type LogAppendTime", *range(header.record_count)
                )
            stamp_create_time(batch, header.max_timestamp)
            header = read_header(batch)
        bounded = not self.append_time and self._bounds_concern(header.max_timestamp, now_ms)
        another_codec = self._codec is not None and header.codec != self._codec
        if self._validate or self._compact or bounded or another_codec:
            payload = yield partial(payload_of, batch, header)
            if self._validate:
                yield from _check_deltas(payload, header)
            if self._compact or bounded:
                yield from self._check_records(payload, header, now_ms, bounded=bounded)
            if another_codec:
                batch = yield from self._recompressed(payload, header)
        if self.append_time:
            stamp_append_time(batch, now_ms)
        return batch, read_header(batch)

    def _bounds_concern(self, timestamp: int, now_ms: int) -> bool:
        return timestamp - now_ms > self._after_ms or self._before_ms != MAX_LONG

    def _check_records(
        self, payload: bytes, header: BatchHeader, now_ms: int, *, bounded: bool
    ) -> Generator[None, bytes, None]:
        earliest = now_ms - self._before_ms if self._before_ms != MAX_LONG else -MAX_LONG
        latest = now_ms + self._after_ms
        keyless: list[int] = []
        outside: list[int] = []
        for index, record in enumerate(iter_payload(payload, header)):
            if self._compact and record.key is None:
                keyless.append(index)
            if bounded and record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest:
                outside.append(index)
            if not index % _PER_STEP:
                yield
        if keyless:
            raise InvalidRecord("a compacted topic takes no record without a key", *keyless)
        if outside:
            raise InvalidTimestamp(f"a timestamp is not between {earliest} and {latest}", *outside)

    def _recompressed(
        self, payload: bytes, header: BatchHeader
    ) -> Generator[Callable[[int], bytes], bytes, memoryview]:
        codec = self._codec
        assert codec is not None
        batch = bytearray((yield lambda _: replace_payload(header, payload, codec, self._level)))
        if len(batch) > self.max_bytes:
            raise RecordTooLarge(
                f"the batch has {len(batch)} bytes as {compression.CODEC_NAMES[codec]}, "
                f"at most {self.max_bytes} are allowed"
            )
        return memoryview(batch)


def _check_deltas(payload: bytes, header: BatchHeader) -> Generator[None, bytes, None]:
    """Offset deltas run 0, 1, 2, …; the sizes of the records and of their parts add up."""
    for index, record in enumerate(iter_payload(payload, header)):
        if record.offset_delta != index:
            raise InvalidRecord(f"offset delta {record.offset_delta} where {index} is due", index)
        if not index % _PER_STEP:
            yield


def target_codec(compression_type: str) -> int | None:
    """None: whatever the producer chose."""
    if compression_type == "producer":
        return None
    return (
        compression.NONE
        if compression_type == "uncompressed"
        else compression.CODEC_NAMES.index(compression_type)
    )
