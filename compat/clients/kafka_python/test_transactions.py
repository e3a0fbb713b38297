"""The transactional producer of kafka-python, and its consumer of committed records."""

from __future__ import annotations

from typing import Any

import kafka
import kafka.errors

from compat.clients.transactions import SECONDS, Fenced, Transactions


class KafkaPython:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: Any = None

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=self._bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=0,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        try:
            self._producer.send(topic, value.encode(), partition=partition).get(SECONDS)
        except kafka.errors.KafkaError as error:
            self._raise(error)

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        position = kafka.structs.OffsetAndMetadata(offset, "", -1)
        self._producer.send_offsets_to_transaction({kafka.TopicPartition(topic, partition): position}, group)

    def commit(self) -> None:
        try:
            self._producer.commit_transaction()
        except kafka.errors.KafkaError as error:
            self._raise(error)

    def abort(self) -> None:
        self._producer.abort_transaction()

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            isolation_level="read_committed" if committed else "read_uncommitted",
            fetch_max_wait_ms=100,
        )
        try:
            assigned = [kafka.TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(assigned)
            ends = consumer.end_offsets(assigned)
            for each in assigned:
                consumer.seek(each, 0)
            values: list[str] = []
            while any(consumer.position(each) < ends[each] for each in assigned):
                for records in consumer.poll(100).values():
                    values += [record.value.decode() for record in records]
            return values
        finally:
            consumer.close()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=0)

    def _raise(self, error: Exception) -> None:
        fenced = (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError)
        if isinstance(error, fenced) or isinstance(error.__cause__, fenced) or "Fenced" in repr(error):
            raise Fenced(str(error)) from error
        raise error


class TestTransactions(Transactions):
    client = KafkaPython
