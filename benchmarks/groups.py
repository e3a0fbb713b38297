"""`python -m benchmarks.groups`: consumer groups on kbroker and on Apache Kafka 4.3.1, in turns, in one run.

How soon members have their partitions, what an offset commit and a heartbeat cost, and how many SQLite
transactions kbroker needs for the commits. The default sizes are tiny: does it run at all; --scale 1 is the
real thing, with up to 100 members. Both brokers come with their own settings, so Apache Kafka waits three
seconds for more members before the first rebalance of a classic group (group.initial.rebalance.delay.ms).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks import group_loads
from benchmarks.compare import python_loads, report
from benchmarks.compare.brokers import BenchKafka, BenchKbroker, Broker
from benchmarks.compare.rows import Numbers
from compat.harness import jars

_KAFKA_SETTINGS = {"group.initial.rebalance.delay.ms": "3000"}  # its default; the harness sets 0
_topics = itertools.count()


class Row(NamedTuple):
    name: str
    run: Callable[[Broker, float], Numbers]


def _new_topic(broker: Broker, partitions: int) -> str:
    topic = f"groups-{next(_topics)}"
    python_loads.create_topic(broker, topic, partitions)
    return topic


def _settle(protocol: str, members: int) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(2, int(members * scale))
        topic = _new_topic(broker, group_loads.PARTITIONS_EACH * count)
        return {"settle_s": group_loads.settle(broker, topic, count, protocol)}

    return run


def _commits(
    clients: int, commits: int, per_second: float | None = None
) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(100, int(commits * scale))
        topic = _new_topic(broker, 10)
        frames = group_loads.commit_frames(topic, 10, clients)
        group_loads.pump(broker, frames, group_loads.COMMIT_ERROR, clients)  # the groups come into being
        before = _transactions(broker)
        pumped = group_loads.pump(broker, frames, group_loads.COMMIT_ERROR, count, per_second)
        percentiles = statistics.quantiles(pumped.milliseconds, n=100)
        numbers = {
            "commits_per_s": count / pumped.seconds,
            "cpu_us_per_commit": pumped.cpu_seconds / count * 1e6,
            "commit_p50_ms": percentiles[49],
            "commit_p99_ms": percentiles[98],
        }
        if before is not None:
            numbers["transactions_per_s"] = ((_transactions(broker) or 0) - before) / pumped.seconds
        return numbers

    return run


def _transactions(broker: Broker) -> int | None:
    return group_loads.sqlite_transactions(broker.data) if isinstance(broker, BenchKbroker) else None


def _heartbeats(
    frame: Callable[[Broker, str], bytes], connections: int, heartbeats: int
) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(100, int(heartbeats * scale))
        frames = [frame(broker, _new_topic(broker, 1))] * connections
        pumped = group_loads.pump(broker, frames, group_loads.HEARTBEAT_ERROR, count)
        return {
            "heartbeats_per_s": count / pumped.seconds,
            "cpu_us_per_heartbeat": pumped.cpu_seconds / count * 1e6,
        }

    return run


ROWS: tuple[Row, ...] = (
    Row("10 members settle, classic", _settle("classic", 10)),
    Row("10 members settle, consumer", _settle("consumer", 10)),
    Row("100 members settle, classic", _settle("classic", 100)),
    Row("100 members settle, consumer", _settle("consumer", 100)),
    Row("commits, 1 client", _commits(1, 5_000)),
    Row("commits, 100 clients", _commits(100, 30_000)),
    Row("commits, 100 clients, 1,000/s", _commits(100, 5_000, per_second=1_000)),
    Row("heartbeats, classic", _heartbeats(group_loads.classic_heartbeat_frame, 5, 30_000)),
    Row("heartbeats, consumer", _heartbeats(group_loads.consumer_heartbeat_frame, 5, 30_000)),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1, help="how often each load runs on each broker")
    parser.add_argument("--scale", type=float, default=0.02, help="size of the loads (1: as named)")
    parser.add_argument("--only", metavar="TEXT", help="rows whose name contains this")
    given = parser.parse_args()
    rows = [row for row in ROWS if given.only is None or given.only in row.name]
    if not rows:
        parser.error(f"no row contains {given.only!r}: {', '.join(row.name for row in ROWS)}")
    jars.classpath("kafka")  # downloaded before anything is timed
    samples: report.Samples = {}
    with ExitStack() as stack:
        brokers: list[Broker] = [BenchKbroker(), BenchKafka(_KAFKA_SETTINGS)]
        for broker in brokers:
            stack.enter_context(broker)
            group_loads.wait_for_coordinator(broker)
        for row in rows:
            samples[row.name] = {broker.name: [] for broker in brokers}
            for _ in range(given.rounds):
                for broker in brokers:
                    samples[row.name][broker.name].append(row.run(broker, given.scale))
            print(row.name, flush=True)
    print("\n" + report.table(report.lines(samples)))
    for name, by_broker in samples.items():
        used = [each["transactions_per_s"] for each in by_broker["kbroker"] if "transactions_per_s" in each]
        if used:
            print(f"{name}: kbroker used {statistics.median(used):.0f} SQLite transactions/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
