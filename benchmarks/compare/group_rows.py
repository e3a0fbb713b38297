"""Consumer groups: how soon members have their partitions, what a commit and a heartbeat cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.compare import group_loads
from benchmarks.compare.brokers import Broker
from benchmarks.compare.measures import Load, Numbers, Row, new_topic


def _settle(protocol: str, members: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(2, int(members * scale))
        topic = new_topic(broker, group_loads.PARTITIONS_EACH * count)
        return {"settle_s": group_loads.settle(broker, topic, count, protocol)}

    return run


def _commits(clients: int, commits: int, per_second: float | None = None) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(100, int(commits * scale))
        topic = new_topic(broker, 10)
        frames = group_loads.commit_frames(topic, 10, clients)
        group_loads.pump(broker, frames, group_loads.COMMIT_ERROR, clients)  # the groups come into being
        pumped = group_loads.pump(broker, frames, group_loads.COMMIT_ERROR, count, per_second)
        percentiles = statistics.quantiles(pumped.milliseconds, n=100)
        return {
            "commits_per_s": count / pumped.seconds,
            "cpu_us_per_commit": pumped.cpu_seconds / count * 1e6,
            "commit_p50_ms": percentiles[49],
            "commit_p99_ms": percentiles[98],
        }

    return run


def _heartbeats(frame: Callable[[Broker, str], bytes], connections: int, heartbeats: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(100, int(heartbeats * scale))
        frames = [frame(broker, new_topic(broker, 1))] * connections
        pumped = group_loads.pump(broker, frames, group_loads.HEARTBEAT_ERROR, count)
        return {
            "heartbeats_per_s": count / pumped.seconds,
            "cpu_us_per_heartbeat": pumped.cpu_seconds / count * 1e6,
        }

    return run


ROWS: tuple[Row, ...] = (
    Row("group: 10 members settle, classic", _settle("classic", 10)),
    Row("group: 10 members settle, consumer", _settle("consumer", 10)),
    Row("group: 100 members settle, classic", _settle("classic", 100)),
    Row("group: 100 members settle, consumer", _settle("consumer", 100)),
    Row("group: commits, 1 client", _commits(1, 5_000)),
    Row("group: commits, 100 clients", _commits(100, 30_000)),
    Row("group: commits, 100 clients, 1,000/s", _commits(100, 5_000, per_second=1_000)),
    Row("group: heartbeats, classic", _heartbeats(group_loads.classic_heartbeat_frame, 5, 30_000)),
    Row("group: heartbeats, consumer", _heartbeats(group_loads.consumer_heartbeat_frame, 5, 30_000)),
)
