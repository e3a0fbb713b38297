"""The rows of the comparison: what is measured, in which unit, and whether more is better.

A row runs a load once on one broker and returns its numbers. ``scale`` shrinks it: CI runs every row at a
tiny size, to see that it runs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.compare import java_loads, python_loads
from benchmarks.compare.brokers import BenchKafka, BenchKbroker, Broker, Meter, Usage

_GIB = 2**30
_topics = itertools.count()

Numbers = dict[str, float]


class Row(NamedTuple):
    name: str
    run: Callable[[Broker, float], Numbers]
    own_broker: bool = False  # starts brokers of its own instead of loading the shared one
    settings: tuple[tuple[str, str], ...] = ()


# What each number is: unit, and whether higher is better.
UNITS: dict[str, tuple[str, bool]] = {
    "records_per_s": ("records/s", True),
    "mb_per_s": ("MB/s", True),
    "cpu_s_per_gib": ("broker CPU s/GiB", False),
    "produce_p50_ms": ("ms", False),
    "produce_p99_ms": ("ms", False),
    "produce_p999_ms": ("ms", False),
    "produce_max_ms": ("ms", False),
    "end_to_end_p50_ms": ("ms", False),
    "end_to_end_p99_ms": ("ms", False),
    "end_to_end_p999_ms": ("ms", False),
    "end_to_end_max_ms": ("ms", False),
    "start_s": ("s", False),
    "rss_anon_mb": ("MB RssAnon", False),
    "rss_file_mb": ("MB RssFile", False),
    "create_s": ("s", False),
    "cpu_us_per_produce": ("broker CPU µs/produce", False),
    "settle_s": ("s", False),
    "commits_per_s": ("commits/s", True),
    "cpu_us_per_commit": ("broker CPU µs/commit", False),
    "commit_p50_ms": ("ms", False),
    "commit_p99_ms": ("ms", False),
    "transactions_per_s": ("transactions/s", True),
    "cpu_us_per_transaction": ("broker CPU µs/transaction", False),
    "heartbeats_per_s": ("heartbeats/s", True),
    "cpu_us_per_heartbeat": ("broker CPU µs/heartbeat", False),
}


def _new_topic(broker: Broker, partitions: int = 1, **configs: str) -> str:
    topic = f"bench-{next(_topics)}"
    python_loads.create_topic(broker, topic, partitions, **configs)
    return topic


def _java_producer(size: int, volume_mb: int = 512, **configs: str) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        records = max(1000, int(volume_mb * 2**20 * scale / size))
        topic = _new_topic(broker)
        meter = Meter(broker)
        result = java_loads.produce(broker, topic, records, size, **configs)
        cpu = meter.cpu_seconds
        return {
            "records_per_s": result.records_per_second,
            "cpu_s_per_gib": cpu / (records * size / _GIB),
        }

    return run


def _client_producer(
    produce: Callable[[Broker, str, int, int], float], size: int, records: int
) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(1000, int(records * scale))
        topic = _new_topic(broker)
        meter = Meter(broker)
        rate = produce(broker, topic, count, size)
        return {"records_per_s": rate, "cpu_s_per_gib": meter.cpu_seconds / (count * size / _GIB)}

    return run


def _java_consumer(broker: Broker, scale: float) -> Numbers:
    size = 1024
    records = max(1000, int(1_000_000 * scale))
    topic = _new_topic(broker)
    java_loads.produce(broker, topic, records, size)
    meter = Meter(broker)
    rate = java_loads.consume(broker, topic, records, f"group-{topic}")
    return {"mb_per_s": rate, "cpu_s_per_gib": meter.cpu_seconds / (records * size / _GIB)}


def _latency(rate: int) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        return python_loads.latency(broker, _new_topic(broker), rate, seconds=max(0.5, 10 * scale))

    return run


def _fsync(broker: Broker, scale: float) -> Numbers:
    size = 1024
    records = max(1000, int(200_000 * scale))
    topic = _new_topic(broker, flush_messages="1")
    result = java_loads.produce(broker, topic, records, size, acks="all")
    return {"records_per_s": result.records_per_second, "produce_p99_ms": result.p99_ms}


def _memory_after_load(broker: Broker, scale: float) -> Numbers:
    topic = _new_topic(broker)
    java_loads.produce(broker, topic, max(1000, int(500_000 * scale)), 1024)
    return _memory(broker)


def _memory(broker: Broker) -> Numbers:
    usage = Usage.of(broker.pid)
    return {"rss_anon_mb": usage.rss_anon_bytes / 2**20, "rss_file_mb": usage.rss_file_bytes / 2**20}


def _start(broker: Broker, scale: float) -> Numbers:
    """A broker of the same kind, from nothing to the first answer, then idle."""
    fresh = type(broker)()
    try:
        begin = time.perf_counter()
        fresh.start()
        for connection in python_loads.open_connections(fresh, 1):
            connection.close()
        return {"start_s": time.perf_counter() - begin, **_memory(fresh)}
    finally:
        fresh.__exit__(None, None, None)


def _connections(broker: Broker, scale: float) -> Numbers:
    count = max(10, int(1000 * scale))
    before = Usage.of(broker.pid).rss_anon_bytes
    connections = python_loads.open_connections(broker, count)
    try:
        topic = _new_topic(broker)
        result = java_loads.produce(broker, topic, max(1000, int(200_000 * scale)), 1024)
        grown = Usage.of(broker.pid).rss_anon_bytes - before
    finally:
        for connection in connections:
            connection.close()
    return {"records_per_s": result.records_per_second, "rss_anon_mb": grown / 2**20}


def _many_partitions(broker: Broker, scale: float) -> Numbers:
    """10 topics of 1,000 partitions on a broker of their own: made, loaded, restarted."""
    per_topic = max(10, int(1000 * scale))
    fresh = type(broker)()
    fresh.start()
    try:
        begin = time.perf_counter()
        topics = [_new_topic(fresh, per_topic) for _ in range(10)]
        create = time.perf_counter() - begin
        meter = Meter(fresh)
        records = per_topic * 20
        result = java_loads.produce(fresh, topics[0], records, 1024)
        cpu = meter.cpu_seconds
        begin = time.perf_counter()
        fresh.restart()
        for connection in python_loads.open_connections(fresh, 1):
            connection.close()
        return {
            "create_s": create,
            "records_per_s": result.records_per_second,
            "cpu_us_per_produce": cpu / records * 1e6,
            "start_s": time.perf_counter() - begin,
            **_memory(fresh),
        }
    finally:
        fresh.__exit__(None, None, None)


ROWS: tuple[Row, ...] = (
    Row("start", _start, own_broker=True),
    Row("producer-perf 100 B", _java_producer(100, 100)),
    Row("producer-perf 1 KiB", _java_producer(1024)),
    Row("producer-perf 1 KiB, 64 KiB batches", _java_producer(1024, batch_size="65536", linger_ms="5")),
    Row("producer-perf 10 KiB", _java_producer(10240)),
    Row("producer-perf 1 KiB, acks=1", _java_producer(1024, acks="1")),
    Row("producer-perf 1 KiB, lz4", _java_producer(1024, compression_type="lz4")),
    Row("producer-perf 1 KiB, zstd", _java_producer(1024, compression_type="zstd")),
    Row("librdkafka producer 1 KiB", _client_producer(python_loads.produce_librdkafka, 1024, 300_000)),
    Row("kafka-python producer 1 KiB", _client_producer(python_loads.produce_kafka_python, 1024, 60_000)),
    Row("consumer-perf 1 KiB from the start", _java_consumer),
    Row("latency at 1,000/s", _latency(1000)),
    Row("latency at 5,000/s", _latency(5000)),
    Row("fsync: producer-perf 1 KiB, flush.messages=1", _fsync),
    Row("memory after 500 MB", _memory_after_load),
    Row("1,000 connections", _connections),
    Row("10,000 partitions", _many_partitions, own_broker=True),
)

KINDS: tuple[type[BenchKbroker] | type[BenchKafka], ...] = (BenchKbroker, BenchKafka)
