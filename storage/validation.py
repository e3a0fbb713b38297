"""What a topic's configs ask of a producer's batch beyond its being intact, and what they change in it.

    message.timestamp.type          LogAppendTime stamps the batch; CreateTime holds it to the bounds below
    message.timestamp.before/after  every record's CreateTime lies within them (without a timestamp: always)
    compression.type                another codec than the topic's is compressed again
    cleanup.policy=compact          every record has a key
    kbroker.validate.records        every record is well formed, not only the batch's header and checksum
    max.message.bytes               the size of the batch, also after compressing it again

A batch that none of these concern is never decompressed: `BatchRules.plain` says so for a config.
"""

from __future__ import annotations

from kbroker.protocol import compression
from kbroker.protocol.records import (
    NO_TIMESTAMP,
    BatchHeader,
    InvalidRecord,
    iter_records,
    read_header,
    recompress,
    stamp_append_time,
    stamp_create_time,
    validate_records,
)
from kbroker.storage.config import LOG_APPEND_TIME, MAX_LONG, LogConfig
from kbroker.storage.errors import InvalidTimestamp, RecordTooLarge

_LOG_APPEND_TIME_BIT = 0x08


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
        self.plain = not (self.append_time or self._compact or self._validate or self._codec is not None)

    def concern(self, header: BatchHeader, now_ms: int) -> bool:
        """Whether `apply` has anything to look at or to change."""
        return header.attributes & _LOG_APPEND_TIME_BIT != 0 or self.concern_time(
            header.max_timestamp, now_ms
        )

    def concern_time(self, timestamp: int, now_ms: int) -> bool:
        """The same of batches of CreateTime, of which this is the largest timestamp."""
        return not self.plain or timestamp - now_ms > self._after_ms or self._before_ms != MAX_LONG

    def apply(self, batch: memoryview, header: BatchHeader, now_ms: int) -> tuple[memoryview, BatchHeader]:
        """The batch as it is to be appended: patched in place, or a new one."""
        if header.attributes & _LOG_APPEND_TIME_BIT:
            if self.append_time or header.max_timestamp == NO_TIMESTAMP:
                raise InvalidTimestamp(
                    "a producer does not set the timestamp type LogAppendTime", *range(header.record_count)
                )
            stamp_create_time(batch, header.max_timestamp)
        if self._validate:
            validate_records(batch)
        self._check_records(batch, header, now_ms)
        if self._codec is not None and header.codec != self._codec:
            batch = memoryview(bytearray(recompress(batch, self._codec, self._level)))
            if len(batch) > self.max_bytes:
                raise RecordTooLarge(
                    f"the batch has {len(batch)} bytes as {compression.CODEC_NAMES[self._codec]}, "
                    f"at most {self.max_bytes} are allowed"
                )
        if self.append_time:
            stamp_append_time(batch, now_ms)
        return batch, read_header(batch)

    def _check_records(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        earliest = now_ms - self._before_ms if self._before_ms != MAX_LONG else -MAX_LONG
        latest = now_ms + self._after_ms
        bounded = not self.append_time and (header.max_timestamp > latest or self._before_ms != MAX_LONG)
        if not self._compact and not bounded:
            return
        keyless: list[int] = []
        outside: list[int] = []
        for index, record in enumerate(iter_records(batch)):
            if self._compact and record.key is None:
                keyless.append(index)
            if bounded and record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest:
                outside.append(index)
        if keyless:
            raise InvalidRecord("a compacted topic takes no record without a key", *keyless)
        if outside:
            raise InvalidTimestamp(f"a timestamp is not between {earliest} and {latest}", *outside)


def target_codec(compression_type: str) -> int | None:
    """None: whatever the producer chose."""
    if compression_type == "producer":
        return None
    return (
        compression.NONE
        if compression_type == "uncompressed"
        else compression.CODEC_NAMES.index(compression_type)
    )
