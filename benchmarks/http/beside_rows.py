"""What a Kafka producer feels of load by HTTP on the same broker: its latency with and without.

A thousand records a second, each acknowledged by itself, while another process loads the broker by HTTP.
"""

from __future__ import annotations

from contextlib import nullcontext

from benchmarks.compare import python_loads
from benchmarks.compare.brokers import Meter, Usage
from benchmarks.compare.measures import new_topic, remove_topics
from benchmarks.http import client
from benchmarks.http.brokers import HttpBroker
from benchmarks.http.pressure import pressure
from benchmarks.raw import frame_of_records

Numbers = dict[str, float]
RATE = 1000
_SECONDS = 8
_STORED = 20_000  # records of 1 KiB in the topic that is read

ROWS: dict[str, str | None] = {
    "nothing": None,
    "1,000 idle connections": "idle",
    "1,000 small publishes/s": "small",
    "200 publishes/s of 100 × 100 B, JSON": "batches",
    "10 uploads/s of 1 MB, base64": "uploads",
    "10 fetches/s of 1 MB, JSON": "fetches",
    "1,000 idle WebSockets": "idle sockets",
    "200 slow readers of 16 MB each": "slow readers",
    "100 bodies of 16 MB that never end": "endless bodies",
    "these WebSockets, slow readers and bodies together": "all of them",
}
"""Kinds of pressure by what the table calls them."""


def run(kind: str | None, broker: HttpBroker, scale: float) -> Numbers:
    topic, loaded = new_topic(broker), new_topic(broker)
    if kind is not None:
        frame = frame_of_records(loaded, 0, [bytes(1024)] * 500, -1)
        client.pump(broker.address, frame, max(1, int(_STORED * scale) // 500), client.take_frame)
    _, port = broker.http_address
    with nullcontext() if kind is None else pressure(port, loaded, kind):
        meter = Meter(broker)
        found = python_loads.latency(broker, topic, RATE, max(0.5, _SECONDS * scale))
        cores = meter.cpu_seconds / meter.wall_seconds
        memory = Usage.of(broker.pid).rss_anon_bytes / 2**20
    remove_topics(broker)
    return {
        **{name: value for name, value in found.items() if name.startswith("produce_")},
        "cores": cores,
        "rss_anon_mb": memory,
    }
