"""The broker as a process: how soon it answers, what it holds, and what many of a thing cost it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.compare import java_loads, python_loads
from benchmarks.compare.brokers import Broker, Meter, Usage
from benchmarks.compare.measures import Numbers, Row, new_topic


def _rss_anon_mb(broker: Broker) -> float:
    return Usage.of(broker.pid).rss_anon_bytes / 2**20


def _restart(broker: Broker) -> float:
    """Seconds from the start of the process to its first answer, with the data that it has."""
    broker.stop_process()
    begin = time.perf_counter()
    broker.start_again()
    for connection in python_loads.open_connections(broker, 1):
        connection.close()
    return time.perf_counter() - begin


def _start(broker: Broker, scale: float) -> Numbers:
    """A broker of the same kind whose directory is set up (Kafka's is formatted), idle afterwards."""
    with broker.another() as fresh:
        return {"start_s": _restart(fresh), "rss_anon_mb": _rss_anon_mb(fresh)}


def _memory_after_load(broker: Broker, scale: float) -> Numbers:
    with broker.another() as fresh:
        java_loads.produce(fresh, new_topic(fresh), max(1000, int(500_000 * scale)), 1024)
        return {"rss_anon_mb": _rss_anon_mb(fresh)}


def _connections(broker: Broker, scale: float) -> Numbers:
    count = max(10, int(1000 * scale))
    records = max(1000, int(200_000 * scale))
    topic = new_topic(broker)
    with _open_connections(broker, count):
        meter = Meter(broker)
        result = java_loads.produce(broker, topic, records, 1024)
        cpu = meter.cpu_seconds
    with broker.another() as fresh, _open_connections(fresh, count):
        memory = _rss_anon_mb(fresh)  # of a heap that has seen nothing else
    return {
        "records_per_s": result.records_per_second,
        "cpu_us_per_record": cpu / records * 1e6,
        "rss_anon_mb": memory,
    }


@contextmanager
def _open_connections(broker: Broker, count: int) -> Iterator[None]:
    connections = python_loads.open_connections(broker, count)
    try:
        yield
    finally:
        for connection in connections:
            connection.close()


def _many_partitions(broker: Broker, scale: float) -> Numbers:
    """10 topics of 1,000 partitions on a broker of their own: made, loaded, restarted."""
    per_topic = max(10, int(1000 * scale))
    with broker.another() as fresh:
        begin = time.perf_counter()
        topics = [new_topic(fresh, per_topic) for _ in range(10)]
        create = time.perf_counter() - begin
        meter = Meter(fresh)
        records = per_topic * 100
        result = java_loads.produce(fresh, topics[0], records, 1024)
        cpu = meter.cpu_seconds
        memory = _rss_anon_mb(fresh)
        return {
            "create_s": create,
            "records_per_s": result.records_per_second,
            "cpu_us_per_record": cpu / records * 1e6,
            "rss_anon_mb": memory,
            "start_s": _restart(fresh),
        }


ROWS: tuple[Row, ...] = (
    Row("start, idle", _start),
    Row("memory after 500 MB", _memory_after_load),
    Row("1,000 connections", _connections),
    Row("10,000 partitions", _many_partitions),
)
