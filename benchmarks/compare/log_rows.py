"""Records in and out: throughput, CPU and latency."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.compare import java_loads, limits, python_loads
from benchmarks.compare.brokers import BenchKbroker, Broker, Meter
from benchmarks.compare.measures import GIB, Load, Numbers, Row, new_topic

_MIB = 2**20
_CONSUMED_RECORDS = 2_000_000
_GIB_RECORDS = 2**20  # of 1 KiB each
_BATCH_BYTES = 16_384  # what a producer of Java's sends by default
LARGE_BATCHES = {"batch_size": "65536", "linger_ms": "5"}
_NEVER = str(2**63 - 1)


def producer_perf(
    name: str, size: int, volume_mb: int = 512, *, flush_ms: str | None = None, **configs: str
) -> Row:
    def run(broker: Broker, scale: float) -> Numbers:
        records = max(1000, int(volume_mb * _MIB * scale / size))
        topic = new_topic(broker, **({} if flush_ms is None else {"flush_ms": flush_ms}))
        meter = Meter(broker)
        result = java_loads.produce(broker, topic, records, size, **configs)
        return {
            "records_per_s": result.records_per_second,
            "cpu_s_per_gib": meter.cpu_seconds / (records * size / GIB),
        }

    batch_bytes = int(configs.get("batch_size", _BATCH_BYTES))
    # What compression leaves of a record is the producer's affair.
    limit = None if "compression_type" in configs else limits.produced(volume_mb * _MIB, size, batch_bytes)
    return Row(f"producer-perf {name}", run, limit)


def _client_producer(produce: Callable[[Broker, str, int, int], float], size: int, records: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(1000, int(records * scale))
        topic = new_topic(broker)
        meter = Meter(broker)
        rate = produce(broker, topic, count, size)
        return {"records_per_s": rate, "cpu_s_per_gib": meter.cpu_seconds / (count * size / GIB)}

    return run


def consumer_perf(
    records: int = _CONSUMED_RECORDS,
    *,
    cold: bool = False,
    partitions: int = 1,
    batches: dict[str, str] = LARGE_BATCHES,
    restarted: bool = False,
    consumers: int = 1,
) -> Load:
    """From the start of a topic. What lies where in a broker's memory depends on its layout."""

    def run(broker: Broker, scale: float) -> Numbers:
        size = 1024
        count = max(1000, int(records * scale))
        topic = new_topic(broker, partitions)
        java_loads.produce(broker, topic, count, size, **batches)
        _write_out(broker.data, evict=cold)
        if restarted and isinstance(broker, BenchKbroker):  # Kafka stays warm
            broker.restart()
        meter = Meter(broker)
        with ThreadPoolExecutor() as pool:
            reading = [
                pool.submit(java_loads.consume, broker, topic, count, f"group-{topic}-{number}")
                for number in range(consumers)
            ]
            rate = sum(each.result() for each in reading)
        moved = count * size * consumers
        return {"mb_per_s": rate, "cpu_s_per_gib": meter.cpu_seconds / (moved / GIB)}

    return run


def _write_out(data: Path, *, evict: bool) -> None:
    """Have the logs on the disk before they are read, and if asked so in the disk only."""
    for path in data.rglob("*.log"):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(file)
            if evict:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def _tail(consumers: int) -> Load:
    """A producer, and consumers that read what it writes as it comes, each in a JVM of its own."""

    def run(broker: Broker, scale: float) -> Numbers:
        size = 1024
        records = max(1000, int(300_000 * scale))
        topic = new_topic(broker)
        meter = Meter(broker)
        begin = time.perf_counter()
        with ThreadPoolExecutor() as pool:
            reading = [
                pool.submit(java_loads.consume, broker, topic, records, f"group-{topic}-{number}")
                for number in range(consumers)
            ]
            result = java_loads.produce(broker, topic, records, size)
            for each in reading:
                each.result()
        seconds = time.perf_counter() - begin
        moved = records * size * (1 + consumers)
        return {
            "records_per_s": result.records_per_second,
            "mb_per_s": records * size * consumers / _MIB / seconds,
            "cpu_s_per_gib": meter.cpu_seconds / (moved / GIB),
        }

    return run


def _latency(rate: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        return python_loads.latency(broker, new_topic(broker), rate, seconds=max(0.5, 10 * scale))

    return run


def _fsync(broker: Broker, scale: float) -> Numbers:
    records = max(1000, int(100_000 * scale))
    topic = new_topic(broker, flush_messages="1")
    result = java_loads.produce(broker, topic, records, 1024, acks="all")
    return {"records_per_s": result.records_per_second, "produce_p99_ms": result.p99_ms}


_read_limit = limits.consumed(_CONSUMED_RECORDS * 1024)

ROWS: tuple[Row, ...] = (
    producer_perf("100 B", 100, 100),
    producer_perf("100 B, 64 KiB batches", 100, 100, **LARGE_BATCHES),
    producer_perf("1 KiB", 1024),
    producer_perf("1 KiB, 64 KiB batches", 1024, **LARGE_BATCHES),
    producer_perf(
        "1 KiB, 64 KiB batches, written to disk by the system", 1024, flush_ms=_NEVER, **LARGE_BATCHES
    ),
    producer_perf("10 KiB", 10_240),
    producer_perf("10 KiB, 64 KiB batches", 10_240, **LARGE_BATCHES),
    producer_perf("1 KiB, acks=1", 1024, acks="1"),
    producer_perf("1 KiB, lz4", 1024, compression_type="lz4"),
    producer_perf("1 KiB, lz4, 64 KiB batches", 1024, compression_type="lz4", **LARGE_BATCHES),
    producer_perf("1 KiB, zstd", 1024, compression_type="zstd"),
    Row("librdkafka producer 1 KiB", _client_producer(python_loads.produce_librdkafka, 1024, 600_000)),
    Row("kafka-python producer 1 KiB", _client_producer(python_loads.produce_kafka_python, 1024, 60_000)),
    Row("consumer-perf 1 KiB from the start", consumer_perf(), _read_limit),
    Row("consumer-perf 1 KiB from the start, cold", consumer_perf(cold=True), _read_limit),
    Row("consumer-perf 1 KiB, 16 KiB batches", consumer_perf(_GIB_RECORDS, batches={})),
    Row("consumer-perf 1 KiB, 32 partitions", consumer_perf(_GIB_RECORDS, partitions=32)),
    Row(
        "consumer-perf 1 KiB, 16 KiB batches, 32 partitions, restarted",
        consumer_perf(_GIB_RECORDS, partitions=32, batches={}, restarted=True),
    ),
    Row("consumer-perf 1 KiB, 3 consumers at once", consumer_perf(_GIB_RECORDS, consumers=3)),
    Row("1 producer, 1 consumer at the tail", _tail(1)),
    Row("1 producer, 3 consumers", _tail(3)),
    Row("latency at 1,000/s", _latency(1000)),
    Row("latency at 5,000/s", _latency(5000)),
    Row("fsync: producer-perf 1 KiB, flush.messages=1", _fsync),
)
