"""How fast record batches are checked, read and built: python benchmarks/records.py

Each figure is the best of several runs in one process; MB are 10**6 bytes of batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from kbroker.protocol.records import (
    Record,
    assign_offsets,
    build_batch,
    compression,
    iter_records,
    iter_spans,
    payload_of,
    read_header,
    validate_batch,
)
from kbroker.protocol.records.crc32c import crc32c

RUNS = 5
RUN_SECONDS = 0.2


def seconds(call: Callable[[], object]) -> float:
    """The time of one call: the best of RUNS averages."""
    start = time.perf_counter()
    call()
    repeat = max(1, int(RUN_SECONDS / (time.perf_counter() - start + 1e-9)))
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best


def records_of(count: int, value_bytes: int) -> list[Record]:
    half = value_bytes // 2  # half of it compresses
    return [
        Record(1_700_000_000_000 + index, b"key-%06d" % index, os.urandom(half) + bytes(value_bytes - half))
        for index in range(count)
    ]


def main() -> None:
    print("per batch (uncompressed)")
    for size in (1024, 16 * 1024, 1024 * 1024):
        count = max(1, size // 1024)
        batch = memoryview(bytearray(build_batch(records_of(count, min(size, 1024) - 80))))
        for name, call in (
            ("crc32c", lambda batch=batch: crc32c(batch)),
            ("validate_batch", lambda batch=batch: validate_batch(batch)),
            ("assign_offsets", lambda batch=batch: assign_offsets(batch, 1, 1)),
        ):
            taken = seconds(call)
            rate = len(batch) / taken / 1e6
            print(f"  {len(batch):>8} bytes  {name:<15} {taken * 1e6:9.2f} µs {rate:11,.0f} MB/s")

    print("per record (1000 in a batch, values of 100 bytes)")
    records = records_of(1000, 100)
    plain = build_batch(records)
    header = read_header(plain)
    payload = payload_of(plain, header)
    for name, call in (
        ("iter_records", lambda: sum(1 for _ in iter_records(plain))),
        ("iter_spans", lambda: sum(1 for _ in iter_spans(payload, header))),
        ("build_batch", lambda: build_batch(records)),
    ):
        taken = seconds(call)
        print(f"  {name:<15} {len(records) / taken:12,.0f} records/s")

    print("codecs (of uncompressed bytes)")
    for codec in (compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD):
        packed = compression.compress(codec, payload)
        out = seconds(lambda codec=codec: compression.compress(codec, payload))
        back = seconds(lambda codec=codec, packed=packed: compression.decompress(codec, packed, len(payload)))
        print(
            f"  {compression.CODEC_NAMES[codec]:<8} compress {len(payload) / out / 1e6:7.0f} MB/s"
            f"  decompress {len(payload) / back / 1e6:7.0f} MB/s  to {100 * len(packed) / len(payload):.0f} %"
        )


if __name__ == "__main__":
    main()
