"""What `kbroker wire proxy` costs: `python -m benchmarks.wire_proxy`.

Clients through it and without it, in turns, on one broker in memory.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from confluent_kafka import Consumer, Producer

from kbroker.testing import KafkaBroker

ROUNDS = 5
RECORDS = 100_000
RECORD_BYTES = 1000
SINGLE = 1000


@contextmanager
def proxy(upstream: str) -> Iterator[str]:
    command = [
        sys.executable,
        "-m",
        "kbroker",
        "wire",
        "proxy",
        "--upstream",
        upstream,
        "--listen",
        "127.0.0.1:0",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        match = re.search(r"listening on (\S+)", process.stderr.readline())
        assert match is not None
        try:
            yield match[1]
        finally:
            process.terminate()


def produce(bootstrap: str, topic: str, records: int) -> float:
    """MB/s."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.kbytes": 1_000_000}
    )
    value = bytes(RECORD_BYTES)
    started = time.perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if not number % 1000:
            producer.poll(0)
    assert producer.flush(120) == 0
    return records * RECORD_BYTES / (time.perf_counter() - started) / 1e6


def consume(bootstrap: str, topic: str, records: int) -> float:
    """MB/s, from the first record on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-{time.time_ns()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    consumed, started = 0, 0.0
    while consumed < records:
        got = len(consumer.consume(1000, 1))
        started = started or (time.perf_counter() if got else 0.0)
        consumed += got
    took = time.perf_counter() - started
    consumer.close()
    return records * RECORD_BYTES / took / 1e6


def single(bootstrap: str, topic: str, records: int) -> float:
    """The median time of one record, in ms."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    times = []
    for _ in range(records):
        started = time.perf_counter()
        producer.produce(topic, b"x")
        assert producer.flush(30) == 0
        times.append((time.perf_counter() - started) * 1000)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="of the numbers of records")
    scale = parser.parse_args().scale
    records, alone = max(int(RECORDS * scale), 1), max(int(SINGLE * scale), 1)
    results: dict[tuple[str, str], list[float]] = {}
    with KafkaBroker() as broker, proxy(broker.bootstrap_servers) as through:
        for number in range(ROUNDS):
            for way, bootstrap in (("direct", broker.bootstrap_servers), ("proxy", through)):
                topic = f"{way}-{number}"
                broker.create_topic(topic)
                broker.create_topic(f"{topic}-single")
                results.setdefault((way, "produce MB/s"), []).append(produce(bootstrap, topic, records))
                results.setdefault((way, "consume MB/s"), []).append(consume(bootstrap, topic, records))
                times = results.setdefault((way, "one record ms"), [])
                times.append(single(bootstrap, f"{topic}-single", alone))
    for (way, what), values in results.items():
        each = ", ".join(f"{value:.2f}" for value in values)
        print(f"{way:7} {what:14} median {median(values):8.2f}   of {each}")


if __name__ == "__main__":
    main()
