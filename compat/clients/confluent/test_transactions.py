"""The transactional producer of confluent-kafka, and its consumer of committed records."""

from __future__ import annotations

import confluent_kafka

from compat.clients.transactions import SECONDS, Fenced, Transactions


class Confluent:
    def __init__(self, bootstrap: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._producer: confluent_kafka.Producer | None = None

    def init(self, transactional_id: str, timeout_ms: int = 60_000) -> None:
        settings = {
            **self._settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
        self._producer = confluent_kafka.Producer(settings)
        self._producer.init_transactions(SECONDS)

    def begin(self) -> None:
        assert self._producer is not None
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        assert self._producer is not None
        try:
            # No callback: called while a fatal error is being raised, it would be taken for a bug by Python.
            # What is not delivered fails the transaction.
            self._producer.produce(topic, value, partition=partition)
            self._producer.flush(SECONDS)
        except confluent_kafka.KafkaException as error:
            self._raise(error.args[0])

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        assert self._producer is not None
        consumer = confluent_kafka.Consumer({**self._settings, "group.id": group})
        try:
            position = confluent_kafka.TopicPartition(topic, partition, offset)
            self._producer.send_offsets_to_transaction(
                [position], consumer.consumer_group_metadata(), SECONDS
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        assert self._producer is not None
        try:
            self._producer.commit_transaction(SECONDS)
        except confluent_kafka.KafkaException as error:
            self._raise(error.args[0])

    def abort(self) -> None:
        assert self._producer is not None
        self._producer.abort_transaction(SECONDS)

    def read(self, topic: str, partitions: int, *, committed: bool) -> list[str]:
        settings = {
            **self._settings,
            "group.id": "compat-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        values: list[str] = []
        ended = 0
        try:
            while ended < partitions:
                message = consumer.poll(SECONDS)
                assert message is not None, "nothing to read, and no end"
                if message.error() is None:
                    values.append((message.value() or b"").decode())
                else:
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, (
                        message.error()
                    )
                    ended += 1
        finally:
            consumer.close()
        return values

    def close(self) -> None:
        self._producer = None

    def _raise(self, error: confluent_kafka.KafkaError) -> None:
        if error.fatal() or error.code() in (
            confluent_kafka.KafkaError._FENCED,
            confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH,
        ):
            raise Fenced(str(error))
        raise confluent_kafka.KafkaException(error)


class TestTransactions(Transactions):
    client = Confluent
