"""What a judge looks at with a Kafka client that reads what is committed."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "log_level": 0,
        }
    )


def committed_offsets(bootstrap: str, group: str, topic: str, partition_count: int) -> list[int]:
    consumer = _consumer(bootstrap, group)
    try:
        partitions = [TopicPartition(topic, number) for number in range(partition_count)]
        return [max(each.offset, 0) for each in consumer.committed(partitions, 30)]
    finally:
        consumer.close()


def open_partitions(bootstrap: str, topics: Iterable[tuple[str, int]]) -> list[str]:
    """Those of these topics, of so many partitions, whose last stable offset lies before their end."""
    ends: dict[str, dict[tuple[str, int], int]] = {}
    wanted = [(topic, number) for topic, count in topics for number in range(count)]
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "judge",
                "isolation.level": isolation,
                "log_level": 0,
            }
        )
        ends[isolation] = {
            (topic, number): consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1]
            for topic, number in wanted
        }
        consumer.close()
    return [
        f"{topic}-{number}"
        for topic, number in wanted
        if ends["read_committed"][topic, number] != ends["read_uncommitted"][topic, number]
    ]


def read(bootstrap: str, topic: str, partition: int) -> list[str]:
    """What a committed reader finds in a partition, in its order."""
    consumer = _consumer(bootstrap, "judge")
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        values: list[str] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, "the log cannot be read to its end"
            error = message.error()
            if error is None:
                values.append((message.value() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                return values
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
