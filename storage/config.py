"""The configs that a log and a data directory obey, with their defaults: Kafka's, but for flush_ms.

The definitions in ``kbroker.config`` name the field that each config goes to, and take the default from here.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_LONG = 2**63 - 1

COMPACT = "compact"
DELETE = "delete"
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
UNTRACED = "off"


@dataclass(frozen=True, slots=True)
class LogConfig:
    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    retention_bytes: int = -1
    cleanup_policy: frozenset[str] = frozenset((DELETE,))
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    delete_retention_ms: int = 24 * 60 * 60 * 1000
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    flush_messages: int = MAX_LONG
    # Kafka leaves flushing to the operating system; kbroker bounds what a power loss can take to one second.
    flush_ms: int = 1000
    validate_records: bool = False
    """Whether every record of a produced batch is decoded and checked. kbroker's own."""
    trace_sampling: str = UNTRACED
    """Which records leave spans: of those who look, not of the log itself. kbroker's own."""

    @property
    def compact(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return DELETE in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """How long a segment is active: as only ended ones are compacted, max.compaction.lag.ms at most."""
        if self.compact and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms


@dataclass(frozen=True, slots=True)
class DirectoryConfig:
    """The broker configs that a data directory obeys, with Kafka's defaults."""

    retention_check_interval_ms: int = 300_000
    retention_initial_delay_ms: int = 30_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    max_producer_ids: int = 100_000
    flush_offset_checkpoint_interval_ms: int = 60_000
    cleaner_enable: bool = True
    cleaner_backoff_ms: int = 15_000
    cleaner_dedupe_buffer_bytes: int = 128 * 1024 * 1024
    cleaner_dedupe_load_factor: float = 0.9
