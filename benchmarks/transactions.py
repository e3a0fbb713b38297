"""`python -m benchmarks.transactions`: transactions on kbroker and on Apache Kafka 4.3.1, in turns.

How many a second, what a commit takes its producer (commit_transaction, or EndTxn), and what a transaction
costs the broker. The producers of librdkafka use transaction version 1 (AddPartitionsToTxn, Produce, EndTxn);
raw requests use version 2 (Produce, EndTxn), one transaction after the other. The default sizes are tiny:
does it run at all; --scale 1 is the real thing.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from confluent_kafka import Producer

from benchmarks.compare import python_loads, report
from benchmarks.compare.brokers import BenchKafka, BenchKbroker, Broker, Meter
from benchmarks.compare.rows import Numbers
from compat.harness import jars
from compat.harness.batches import TRANSACTIONAL, Record, batch
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

VALUE = bytes(100)
_RETRIABLE = frozenset((14, 15, 16, 51))  # loading, not available, not coordinator, concurrent transactions
_names = itertools.count()


class Row(NamedTuple):
    name: str
    run: Callable[[Broker, float], Numbers]


def _numbers(broker: Broker, count: int, work: Callable[[list[float]], None]) -> Numbers:
    """What `work` measured: it does `count` transactions and notes the milliseconds of each commit."""
    commits: list[float] = []
    meter = Meter(broker)
    work(commits)
    percentiles = statistics.quantiles(commits, n=100)
    return {
        "transactions_per_s": count / meter.wall_seconds,
        "cpu_us_per_transaction": meter.cpu_seconds / count * 1e6,
        "commit_p50_ms": percentiles[49],
        "commit_p99_ms": percentiles[98],
    }


def _librdkafka(producers: int, transactions: int, partitions: int) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        each = max(10, int(transactions * scale) // producers)
        topic = _new_topic(broker, partitions)
        started = [_start_producer(broker) for _ in range(producers)]

        def write(producer: Producer, commits: list[float]) -> None:
            for _ in range(each):
                producer.begin_transaction()
                for partition in range(partitions):
                    producer.produce(topic, VALUE, partition=partition)
                began = time.perf_counter()
                producer.commit_transaction(60)
                commits.append((time.perf_counter() - began) * 1000)

        def work(commits: list[float]) -> None:
            threads = [threading.Thread(target=write, args=(producer, commits)) for producer in started]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return _numbers(broker, each * producers, work)

    return run


def _start_producer(broker: Broker) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": f"bench-{next(_names)}",
            "linger.ms": 0,
            "log_level": 2,
        }
    )
    producer.init_transactions(60)
    return producer


def _raw(transactions: int, partitions: int) -> Callable[[Broker, float], Numbers]:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(20, int(transactions * scale))
        topic = _new_topic(broker, partitions)
        transactional_id = f"bench-{next(_names)}"
        with Connection(broker.bootstrap) as connection:
            initialized = eventually(
                lambda: connection.ask(
                    "InitProducerId", 5, TransactionalId=transactional_id, TransactionTimeoutMs=60_000
                ),
                lambda answer: answer["ErrorCode"] not in _RETRIABLE,
            )
            producer = (initialized["ProducerId"], initialized["ProducerEpoch"])

            def work(commits: list[float]) -> None:
                nonlocal producer
                for _ in range(count):
                    _write(connection, topic, partitions, transactional_id, producer)
                    ended = {
                        "TransactionalId": transactional_id,
                        "ProducerId": producer[0],
                        "ProducerEpoch": producer[1],
                        "Committed": True,
                    }
                    began = time.perf_counter()
                    answer = connection.ask("EndTxn", 5, ended)
                    commits.append((time.perf_counter() - began) * 1000)
                    assert answer["ErrorCode"] == 0, answer
                    producer = (answer["ProducerId"], answer["ProducerEpoch"])

            return _numbers(broker, count, work)

    return run


def _write(
    connection: Connection, topic: str, partitions: int, transactional_id: str, producer: tuple[int, int]
) -> None:
    """The first batch of a transaction in each partition; it waits while the one before is being ended."""
    records = batch(
        (Record(VALUE),),
        attributes=TRANSACTIONAL,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
    )
    data = [{"Index": partition, "Records": records} for partition in range(partitions)]
    request: dict[str, Any] = {
        "TransactionalId": transactional_id,
        "Acks": -1,
        "TimeoutMs": 30_000,
        "TopicData": [{"Name": topic, "PartitionData": data}],
    }
    eventually(
        lambda: connection.ask("Produce", 12, request)["Responses"][0]["PartitionResponses"][0]["ErrorCode"],
        lambda code: code == 0,
    )


def _new_topic(broker: Broker, partitions: int) -> str:
    topic = f"transactions-{next(_names)}"
    python_loads.create_topic(broker, topic, partitions)
    return topic


ROWS: tuple[Row, ...] = (
    Row("librdkafka, 1 producer, 1 partition", _librdkafka(1, 2_000, 1)),
    Row("librdkafka, 1 producer, 10 partitions", _librdkafka(1, 1_000, 10)),
    Row("librdkafka, 10 producers, 3 partitions", _librdkafka(10, 5_000, 3)),
    Row("version 2, 1 producer, 1 partition", _raw(2_000, 1)),
    Row("version 2, 1 producer, 10 partitions", _raw(1_000, 10)),
)


def _wait_for_coordinator(broker: Broker) -> None:
    """Apache Kafka makes the topic of its coordinator when it is first asked for it."""

    def look() -> int:
        with Connection(broker.bootstrap) as connection:
            answer = connection.ask("FindCoordinator", 4, KeyType=1, CoordinatorKeys=["any"])
            return int(answer["Coordinators"][0]["ErrorCode"])

    eventually(look, lambda code: code == 0, seconds=60)


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
        brokers: list[Broker] = [BenchKbroker(), BenchKafka()]
        for broker in brokers:
            stack.enter_context(broker)
            _wait_for_coordinator(broker)
        for row in rows:
            samples[row.name] = {broker.name: [] for broker in brokers}
            for _ in range(given.rounds):
                for broker in brokers:
                    samples[row.name][broker.name].append(row.run(broker, given.scale))
            print(row.name, flush=True)
    print("\n" + report.table(report.lines(samples)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
