"""The data directory: sizes, segments, flushes, reads from the disk, retention, compaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.observability.families import COUNTER, GAUGE, Family, Number, value
from kbroker.observability.histograms import histogram
from kbroker.observability.topic_totals import by_topic, of_all

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.storage.compaction.jobs import CompactionStats


def _space(read: Callable[[Broker], int]) -> Callable[[Broker], Number | None]:
    """None: not known, as of a broker in memory."""

    def found(broker: Broker) -> int | None:
        try:
            size = read(broker)
        except OSError:
            return None
        return size if size >= 0 else None

    return found


def _compaction(name: str, doc: str, read: Callable[[CompactionStats], Number]) -> Family:
    return value(
        f"kbroker_compaction_{name}_total", COUNTER, doc, lambda broker: read(broker.logs.compaction)
    )


FAMILIES = (
    by_topic(
        "kbroker_log_bytes",
        "Bytes of a topic's logs that are open.",
        lambda totals: totals.size_bytes,
        kind=GAUGE,
    ),
    by_topic(
        "kbroker_log_segments",
        "Segments of a topic's logs that are open.",
        lambda totals: totals.segments,
        kind=GAUGE,
    ),
    of_all(
        "kbroker_retention_deleted_segments_total",
        COUNTER,
        "Segments that retention deleted.",
        lambda totals: totals.deleted_segments,
    ),
    of_all(
        "kbroker_retention_deleted_bytes_total",
        COUNTER,
        "Bytes that retention deleted.",
        lambda totals: totals.deleted_bytes,
    ),
    histogram(
        "kbroker_flush_seconds",
        "Forcing logs to the disk: one, or many at once.",
        (),
        lambda broker: [((), broker.logs.counts.syncs)],
    ),
    histogram(
        "kbroker_cold_read_seconds",
        "Reads that the page cache did not have: until the bytes were there.",
        (),
        lambda broker: [((), broker.logs.counts.cold_reads)],
    ),
    _compaction("runs", "Logs compacted.", lambda stats: stats.runs),
    _compaction("read_bytes", "Bytes that compaction read.", lambda stats: stats.bytes_read),
    _compaction("written_bytes", "Bytes that compaction wrote.", lambda stats: stats.bytes_written),
    _compaction("removed_records", "Records that compaction removed.", lambda stats: stats.records_removed),
    _compaction("seconds", "Time that compaction took.", lambda stats: stats.seconds),
    value(
        "kbroker_disk_total_bytes",
        GAUGE,
        "Size of the volume that the data directory is on.",
        _space(lambda broker: broker.logs.total_bytes()),
    ),
    value(
        "kbroker_disk_usable_bytes",
        GAUGE,
        "What is left of it.",
        _space(lambda broker: broker.logs.usable_bytes()),
    ),
)
