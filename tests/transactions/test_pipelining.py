"""A client does not wait for one answer before it sends the next request; the order holds nevertheless."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.end_txn import EndTxnRequest
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess

from .broker_support import produce_error

PARTITIONS = 3


@pytest.fixture
def client() -> Iterator[RawClient]:
    with ServerProcess("--in-memory") as server, server.client() as client:
        topic = CreatableTopic(name="topic", num_partitions=PARTITIONS, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        yield client


def produce(producer_id: int, epoch: int, partition: int, sequence: int) -> ProduceRequest:
    batch = build_batch(
        [Record(1_700_000_000_000, None, b"value")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    data = TopicProduceData(name="topic", partition_data=[PartitionProduceData(partition, batch)])
    return ProduceRequest("id", acks=-1, timeout_ms=10_000, topic_data=[data])


def test_batches_that_wait_for_their_transaction_keep_their_order(client: RawClient) -> None:
    """Every partition's first batch waits until it is stored that the partition is in the transaction."""
    initialized = client.ask(InitProducerIdRequest("id", 60_000), 4)
    producer_id, epoch = initialized.producer_id, initialized.producer_epoch
    for number in range(20):  # the epoch of each transaction is known before the one before it has ended
        for sequence in range(4):
            for partition in range(PARTITIONS):
                client.send(produce(producer_id, epoch + number, partition, sequence), 12)
        client.send(EndTxnRequest("id", producer_id, epoch + number, number % 3 != 0), 5)
    for number in range(20):
        for sequence in range(4):
            for _ in range(PARTITIONS):
                answer = client.receive()
                assert produce_error(answer) == 0
                assert answer.responses[0].partition_responses[0].base_offset == number * 5 + sequence
        ended = client.receive()
        assert (ended.error_code, ended.producer_epoch) == (0, epoch + number + 1)
