"""Consume, transform, produce, exactly once: a process of its own, to be killed.

It copies the records of the input to the output, in transactions that hold the group's offsets too. SIGTERM
ends it after the transaction under way.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.torture.transactional_writer import SECONDS, TIMEOUT_MS

INPUT = "input"
OUTPUT = "output"
GROUP = "processors"
BATCH = 20


class Processor:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._common = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "log_level": 0,
        }
        self._transactional_id = transactional_id
        self._over = False
        signal.signal(signal.SIGTERM, self._stop)
        self._consumer = Consumer(
            {
                **self._common,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 300,
                "fetch.wait.max.ms": 50,
            }
        )

    def run(self) -> None:
        producer = self._start()
        self._consumer.subscribe([INPUT])
        while not self._over:
            try:
                self._step(producer)
            except KafkaException as failure:
                error = failure.args[0]
                try:
                    if not error.txn_requires_abort():
                        producer = self._start()
                    else:
                        producer.abort_transaction(SECONDS)
                    self._rewind()
                except KafkaException:
                    producer = self._start()
                    self._rewind()
        self._consumer.close()

    def _step(self, producer: Producer) -> None:
        messages = [message for message in self._consumer.consume(BATCH, 0.1) if message.error() is None]
        if not messages:
            return
        producer.begin_transaction()
        for message in messages:
            producer.produce(OUTPUT, message.value(), partition=message.partition())
        ends: dict[int, int] = {}
        for message in messages:
            ends[message.partition()] = message.offset() + 1
        positions = [TopicPartition(INPUT, partition, offset) for partition, offset in ends.items()]
        producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), SECONDS)
        while True:
            try:
                producer.commit_transaction(SECONDS)
                return
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise

    def _rewind(self) -> None:
        """What was read since the last commit is to be read again."""
        for committed in self._consumer.committed(self._consumer.assignment(), SECONDS):
            offset = max(committed.offset, 0)
            self._consumer.seek(TopicPartition(committed.topic, committed.partition, offset))

    def _start(self) -> Producer:
        while True:
            producer = Producer(
                {
                    **self._common,
                    "transactional.id": self._transactional_id,
                    "transaction.timeout.ms": TIMEOUT_MS,
                    "message.timeout.ms": TIMEOUT_MS,
                    "linger.ms": 0,
                }
            )
            try:
                producer.init_transactions(SECONDS)
            except KafkaException:
                if self._over:
                    sys.exit(0)
                continue
            return producer

    def _stop(self, *_: object) -> None:
        self._over = True


if __name__ == "__main__":
    bootstrap, transactional_id = sys.argv[1:]
    Processor(bootstrap, transactional_id).run()
