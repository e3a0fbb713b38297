"""Real clients on a broker whose logs give offsets and records later than they are asked for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import RawClient
from tests.support.raw_topics import create, produce, read
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def late() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", module="tests.support.late_broker") as process:
        yield process


@pytest.fixture
def client(late: ServerProcess) -> Iterator[RawClient]:
    with late.client() as client:
        yield client


def consumed(late: ServerProcess, topic: str, count: int, **configs: object) -> list[bytes]:
    consumer = KafkaConsumer(topic, bootstrap_servers=late.bootstrap, auto_offset_reset="earliest", **configs)
    values = [next(consumer).value for _ in range(count)]
    consumer.close()
    return values


def test_a_consumer_of_a_group_reads_what_a_producer_wrote(late: ServerProcess, client: RawClient) -> None:
    create(client, "written", 2)
    producer = KafkaProducer(bootstrap_servers=late.bootstrap, linger_ms=1, batch_size=200)
    sent = [producer.send("written", b"%d" % number, partition=number % 2) for number in range(200)]
    offsets = [(each.get(30).partition, each.get(30).offset) for each in sent]
    producer.close()
    assert offsets == [(number % 2, number // 2) for number in range(200)]
    assert sorted(map(int, consumed(late, "written", 200, group_id="readers"))) == list(range(200))


def test_a_committed_reader_sees_whole_transactions(late: ServerProcess, client: RawClient) -> None:
    create(client, "transactional", 2)
    producer = KafkaProducer(bootstrap_servers=late.bootstrap, transactional_id="id", batch_size=200)
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for value in range(20):
            producer.send("transactional", b"%d-%d" % (number, value), partition=value % 2)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    expected = {b"%d-%d" % (number, value) for number in (0, 2, 4) for value in range(20)}
    found = consumed(late, "transactional", len(expected), isolation_level="read_committed")
    assert (len(found), set(found)) == (len(expected), expected)


def test_offsets_and_deleted_records_are_those_of_the_log(late: ServerProcess, client: RawClient) -> None:
    admin = KafkaAdminClient(bootstrap_servers=late.bootstrap)
    admin.create_topics([NewTopic("deleted", 1, 1)])
    for number in range(5):
        assert produce(client, "deleted", 0, b"%d" % number) == 0
    partition = TopicPartition("deleted", 0)
    admin.delete_records({partition: 3})
    consumer = KafkaConsumer(bootstrap_servers=late.bootstrap)
    assert consumer.beginning_offsets([partition]) == {partition: 3}
    assert consumer.end_offsets([partition]) == {partition: 5}
    consumer.close()
    admin.close()


def test_requests_that_are_sent_together_are_answered_in_order(client: RawClient) -> None:
    create(client, "pipelined", 1)
    frames = []
    for number in range(30):
        batch = build_batch([Record(1, None, b"%d" % number)])
        data = TopicProduceData("pipelined", partition_data=[PartitionProduceData(0, batch)])
        frames.append(client.frame(ProduceRequest(None, acks=-1, timeout_ms=1000, topic_data=[data]), 9))
    client.socket.sendall(b"".join(frames))
    answers = [client.receive().responses[0].partition_responses[0] for _ in frames]
    assert [answer.base_offset for answer in answers] == list(range(30))
    assert read(client, "pipelined", 0) == [b"%d" % number for number in range(30)]
