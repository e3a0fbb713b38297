"""Transactions: how many a second, what a commit takes its producer, what one costs the broker.

The producers of librdkafka use transaction version 1 (AddPartitionsToTxn, Produce, EndTxn); raw requests use
version 2 (Produce, EndTxn), one transaction after the other.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from benchmarks.compare.brokers import Broker, Meter
from benchmarks.compare.measures import Load, Numbers, Row, new_topic
from compat.harness.batches import TRANSACTIONAL, Record, batch
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

VALUE = bytes(100)
_RETRIABLE = frozenset((14, 15, 16, 51))  # loading, not available, not coordinator, concurrent transactions
_names = itertools.count()


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


def _librdkafka(producers: int, transactions: int, partitions: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        each = max(10, int(transactions * scale) // producers)
        topic = new_topic(broker, partitions)
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


def _raw(transactions: int, partitions: int) -> Load:
    def run(broker: Broker, scale: float) -> Numbers:
        count = max(20, int(transactions * scale))
        topic = new_topic(broker, partitions)
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


def wait_for_coordinator(broker: Broker) -> None:
    """Apache Kafka makes the topic of its coordinator when it is first asked for it."""

    def look() -> int:
        with Connection(broker.bootstrap) as connection:
            answer = connection.ask("FindCoordinator", 4, KeyType=1, CoordinatorKeys=["any"])
            return int(answer["Coordinators"][0]["ErrorCode"])

    eventually(look, lambda code: code == 0, seconds=60)


ROWS: tuple[Row, ...] = (
    Row("transactions: librdkafka, 1 producer, 1 partition", _librdkafka(1, 2_000, 1)),
    Row("transactions: librdkafka, 1 producer, 10 partitions", _librdkafka(1, 1_000, 10)),
    Row("transactions: librdkafka, 10 producers, 3 partitions", _librdkafka(10, 5_000, 3)),
    Row("transactions: version 2, 1 producer, 1 partition", _raw(2_000, 1)),
    Row("transactions: version 2, 1 producer, 10 partitions", _raw(1_000, 10)),
)
