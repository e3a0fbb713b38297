"""What a row of the comparison is, and the numbers it may give: their unit, and whether more is better."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.compare import java_loads, python_loads
from benchmarks.compare.brokers import Broker
from compat.harness.waiting import eventually

GIB = 2**30
_topics = itertools.count()
_made: dict[str, list[str]] = {}  # topics, by the address of their broker

Numbers = dict[str, float]
Load = Callable[[Broker, float], Numbers]


class Row(NamedTuple):
    """A load that runs once on one broker and returns its numbers.

    The second argument shrinks it: CI runs rows at a tiny size, to see that they run. ``limit`` does the same
    with a bare copy between socket and file in the broker's place. With ``own_broker`` it starts brokers like
    the one that it gets, and leaves that alone.
    """

    name: str
    run: Load
    limit: Callable[[float], Numbers] | None = None
    own_broker: bool = False


UNITS: dict[str, tuple[str, bool]] = {
    "records_per_s": ("records/s", True),
    "mb_per_s": ("MB/s", True),
    "cpu_s_per_gib": ("broker CPU s/GiB", False),
    "produce_p50_ms": ("produce p50 ms", False),
    "produce_p99_ms": ("produce p99 ms", False),
    "produce_p999_ms": ("produce p99.9 ms", False),
    "produce_max_ms": ("produce max ms", False),
    "end_to_end_p50_ms": ("end to end p50 ms", False),
    "end_to_end_p99_ms": ("end to end p99 ms", False),
    "end_to_end_p999_ms": ("end to end p99.9 ms", False),
    "end_to_end_max_ms": ("end to end max ms", False),
    "start_s": ("start s", False),
    "rss_anon_mb": ("RssAnon MB", False),
    "create_s": ("create s", False),
    "cpu_us_per_record": ("broker CPU µs/record", False),
    "settle_s": ("settle s", False),
    "commits_per_s": ("commits/s", True),
    "cpu_us_per_commit": ("broker CPU µs/commit", False),
    "commit_p50_ms": ("commit p50 ms", False),
    "commit_p99_ms": ("commit p99 ms", False),
    "transactions_per_s": ("transactions/s", True),
    "cpu_us_per_transaction": ("broker CPU µs/transaction", False),
    "first_record_s": ("first record s", False),
    "acknowledge_p50_ms": ("acknowledge p50 ms", False),
    "acknowledge_p99_ms": ("acknowledge p99 ms", False),
    "heartbeats_per_s": ("heartbeats/s", True),
    "cpu_us_per_heartbeat": ("broker CPU µs/heartbeat", False),
    "requests_per_s": ("requests/s", True),
    "cpu_us_per_request": ("broker CPU µs/request", False),
    "logins_per_s": ("logins/s", True),
    "cpu_us_per_login": ("broker CPU µs/login", False),
    "handshakes_per_s": ("handshakes/s", True),
    "cpu_us_per_handshake": ("broker CPU µs/handshake", False),
}


def new_topic(broker: Broker, partitions: int = 1, **configs: str) -> str:
    topic = f"bench-{next(_topics)}"
    python_loads.create_topic(broker, topic, partitions, **configs)
    _made.setdefault(broker.bootstrap, []).append(topic)
    return topic


def remove_topics(broker: Broker) -> None:
    """Delete what a load left, files and all: the next one shall not pay for writing it to the disk."""
    topics = _made.pop(broker.bootstrap, [])
    if topics:
        python_loads.delete_topics(broker, topics)
        eventually(
            lambda: not any(path.name.startswith("bench-") for path in broker.data.iterdir()), seconds=60
        )


def warm_up(broker: Broker, scale: float) -> None:
    """What a JVM has not yet compiled makes it look several times dearer than it is."""
    records = max(1000, int(500_000 * scale))
    for _ in range(2):
        topic = new_topic(broker)
        java_loads.produce(broker, topic, records, 1024)
        java_loads.consume(broker, topic, records, f"group-{topic}")
    remove_topics(broker)
