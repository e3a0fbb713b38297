"""How fast segments are compacted, beside a raw copy of the same bytes: python benchmarks/compaction.py [MB]

Best of three, in one process, on the file system of the temporary directory. MB are 10**6 bytes of `.log`;
every key is written ten times, so that a tenth of the records stays.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kbroker.protocol.records import Record, build_batch
from kbroker.protocol.records.compression import CODEC_NAMES, LZ4, NONE, ZSTD
from kbroker.storage.compaction.cleaner import Cleaner
from kbroker.storage.compaction.jobs import CleaningJob, SegmentToClean
from kbroker.storage.files import Files

RUNS = 3
SEGMENT_BYTES = 16 << 20
RECORDS_PER_BATCH = 100


def fill(directory: Path, size: int, value_bytes: int, codec: int) -> CleaningJob:
    """Segments of one partition, all of them dirty."""
    chance = random.Random(1)
    segments: list[SegmentToClean] = []
    offset = written = 0
    keys = max(size // (value_bytes + 30) // 10, 1)
    while written < size:
        base_offset, parts, length = offset, [], 0
        while length < SEGMENT_BYTES and written + length < size:
            records = [
                Record(1_700_000_000_000, b"key-%09d" % chance.randrange(keys), chance.randbytes(value_bytes))
                for _ in range(RECORDS_PER_BATCH)
            ]
            parts.append(build_batch(records, base_offset=offset, leader_epoch=0, codec=codec))
            offset += RECORDS_PER_BATCH
            length += len(parts[-1])
        (directory / f"{base_offset:020d}.log").write_bytes(b"".join(parts))
        segments.append(SegmentToClean(base_offset, length, 0, 0))
        written += length
    return CleaningJob(
        directory=str(directory),
        segments=segments,
        first_dirty_offset=0,
        first_uncleanable_offset=offset,
        aborted=[],
        producers=[],
        now_ms=1_700_000_000_000,
        delete_retention_ms=0,
        segment_bytes=1 << 30,
        segment_index_bytes=10 << 20,
        index_interval_bytes=4096,
        dedupe_buffer_bytes=128 << 20,
        dedupe_load_factor=0.9,
    )


def copy(directory: Path) -> None:
    """The limit: the same bytes read and written, and synced."""
    for source in sorted(directory.glob("*.log")):
        with source.open("rb") as reading, source.with_suffix(".copy").open("wb") as writing:
            while part := reading.read(1 << 20):
                writing.write(part)
            writing.flush()
            os.fdatasync(writing.fileno())


def seconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main(megabytes: int) -> None:
    print(f"{'values':>12} {'codec':>6} {'compaction':>12} {'records/s':>12} {'raw copy':>12} {'ratio':>7}")
    for value_bytes, codec in ((100, NONE), (1000, NONE), (10_000, NONE), (1000, LZ4), (1000, ZSTD)):
        directory = Path(tempfile.mkdtemp(prefix="kbroker-bench-"))
        try:
            job = fill(directory, megabytes * 10**6, value_bytes, codec)
            size = sum(segment.size_bytes for segment in job.segments)
            compacting = seconds(lambda job=job: list(Cleaner(Files(), job).clean()))
            copying = seconds(lambda directory=directory: copy(directory))
        finally:
            shutil.rmtree(directory)
        print(
            f"{value_bytes:>6} bytes {CODEC_NAMES[codec]:>6} {size / compacting / 1e6:>7.0f} MB/s"
            f" {job.first_uncleanable_offset / compacting:>12,.0f} {size / copying / 1e6:>7.0f} MB/s"
            f" {copying / compacting:>7.3f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
