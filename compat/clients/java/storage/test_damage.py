"""What kbroker makes of damaged files is still Kafka's: a Kafka starts on it and reads what is left."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.harness import server
from compat.harness.kafka import RealKafka
from kbroker.storage.config import LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files
from kbroker.storage.partition_metadata import read_partition_metadata
from kbroker.storage.worker import InlineWorker

pytestmark = pytest.mark.java

TOPIC = "damaged"
RECORDS = 5000


def fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"segment.bytes": "1048576", "retention.ms": "-1"}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": 20_000})
    for number in range(RECORDS):
        producer.produce(TOPIC, value=b"%d " % number + bytes(1000))
        producer.poll(0)
    assert producer.flush(60) == 0


def test_kafka_reads_what_is_left() -> None:
    with RealKafka() as kafka:
        fill(kafka.bootstrap)
        assert kafka._process is not None
        server.stop_process(kafka._process)
        directory = kafka.data / f"{TOPIC}-0"
        logs = sorted(directory.glob("*.log"))
        bases = [int(path.stem) for path in logs]
        assert len(logs) > 4
        logs[1].unlink()
        logs[2].write_bytes(logs[2].read_bytes()[:-50_000])
        logs[-1].write_bytes(logs[-1].read_bytes()[:-100])
        topic_id = read_partition_metadata(Files(), str(directory))
        assert topic_id
        opened = LogDirectory.open(str(kafka.data), worker=InlineWorker(), now_ms=0)
        try:
            log = opened.log(topic_id, TOPIC, 0, LogConfig(retention_ms=-1), 1)
            assert log.log_end_offset == RECORDS
            losses = opened.losses[TOPIC, 0].values()
        finally:
            opened.close()
        lost = {offset for loss in losses for offset in range(loss.first_offset, loss.next_offset)}
        assert set(range(bases[1], bases[2])) < lost
        assert len(list(directory.glob("*.cut"))) == 2
        kafka.start_again()
        left = sorted(set(range(RECORDS)) - lost)
        assert read(kafka.bootstrap, len(left)) == left


def read(bootstrap: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        value = message.value()
        offset = message.offset()
        assert value is not None
        assert offset is not None
        assert value.startswith(b"%d " % offset)
        found.append(offset)
    consumer.close()
    return found
