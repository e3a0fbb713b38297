"""A topic of a test: created, filled, trimmed, deleted, by other clients than the one under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec, TopicMetadata

from compat.harness.waiting import eventually

_NO_TOPIC = TopicMetadata()
Headers = Sequence[tuple[str, bytes | None]]


class Topic:
    def __init__(self, name: str, bootstrap: str, admin: AdminClient) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self._admin = admin

    def __str__(self) -> str:
        return self.name

    def create(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(self.name, partitions, config=dict(configs or {}))
        _done(self._admin.create_topics([wanted]))
        eventually(lambda: self._partitions() == partitions)

    def delete(self) -> None:
        _done(self._admin.delete_topics([self.name]))
        eventually(lambda: self._partitions() == 0)

    def add_partitions(self, total: int) -> None:
        _done(self._admin.create_partitions([NewPartitions(self.name, total)]))
        eventually(lambda: self._partitions() == total)

    def delete_records(self, before: Mapping[int, int]) -> None:
        _done(self._admin.delete_records([TopicPartition(self.name, p, o) for p, o in before.items()]))

    def start_offset(self, partition: int = 0) -> int:
        return self._offset(partition, OffsetSpec.earliest())

    def end_offset(self, partition: int = 0) -> int:
        return self._offset(partition, OffsetSpec.latest())

    def committed(self, group: str) -> dict[int, int]:
        """The group's offsets of this topic, by partition."""
        (answer,) = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        parts = answer.result(60).topic_partitions
        return {part.partition: part.offset for part in parts if part.topic == self.name}

    def _offset(self, partition: int, which: OffsetSpec) -> int:
        """-1 while the partition has no leader, as for a moment after a restart."""
        (answer,) = self._admin.list_offsets({TopicPartition(self.name, partition): which}).values()
        try:
            return int(answer.result(60).offset)
        except KafkaException:
            # librdkafka's admin client goes on saying so; a new one asks again.
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            return -1

    def _partitions(self) -> int:
        return len(self._admin.list_topics(timeout=60).topics.get(self.name, _NO_TOPIC).partitions)

    def produce(
        self,
        values: Iterable[str | bytes | None],
        *,
        partition: int = 0,
        keys: Iterable[str | None] | None = None,
        timestamps: Iterable[int] | None = None,
        headers: Headers | None = None,
        **configs: Any,
    ) -> None:
        """Send values to one partition, in order, and wait for all acknowledgements."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **_dotted(configs)})
        self._send(producer, values, partition, keys, timestamps, headers)
        assert producer.flush(60) == 0

    def produce_transaction(
        self, values: Iterable[str], *, partition: int = 0, transactional_id: str, end: str = "commit"
    ) -> Producer:
        """`end`: commit, abort, or open (the returned producer holds it open)."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": transactional_id})
        producer.init_transactions(60)
        producer.begin_transaction()
        self._send(producer, values, partition, None, None, None)
        assert producer.flush(60) == 0
        if end == "commit":
            producer.commit_transaction(60)
        elif end == "abort":
            producer.abort_transaction(60)
        return producer

    def _send(
        self,
        producer: Producer,
        values: Iterable[str | bytes | None],
        partition: int,
        keys: Iterable[str | None] | None,
        timestamps: Iterable[int] | None,
        headers: Headers | None,
    ) -> None:
        values = list(values)
        each_key = list(keys) if keys is not None else [None] * len(values)
        each_time = list(timestamps) if timestamps is not None else [0] * len(values)
        failed: list[Any] = []
        for value, key, timestamp in zip(values, each_key, each_time, strict=True):
            while True:
                try:
                    producer.produce(
                        self.name, value, key, partition=partition, timestamp=timestamp,
                        headers=list(headers) if headers else None,
                        on_delivery=lambda error, _: failed.append(error) if error else None,
                    )  # fmt: skip
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
        assert not failed, failed


def _dotted(configs: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in configs.items()}


def _done(answers: Mapping[Any, Any]) -> None:
    for answer in answers.values():
        answer.result(60)
