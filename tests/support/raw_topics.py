"""Topics through a raw client: made, deleted, written and read, one batch of one record at a time."""

from __future__ import annotations

import time

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch, iter_batches, iter_records
from tests.support.raw_client import RawClient


def create(client: RawClient, name: str, partitions: int, **configs: str) -> ErrorCode:
    """`segment_bytes` is segment.bytes, and so on."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()],
    )
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    return ErrorCode(answer.topics[0].error_code)


def delete(client: RawClient, name: str) -> ErrorCode:
    answer = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 4)
    return ErrorCode(answer.responses[0].error_code)


def produce(
    client: RawClient, topic: str, partition: int, value: bytes, timestamp: int | None = None
) -> ErrorCode:
    """With acks=all; `timestamp`: now, if not another."""
    timestamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    records = memoryview(build_batch([Record(timestamp, None, value)]))
    data = PartitionProduceData(index=partition, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=[data])]
    )
    return ErrorCode(client.ask(request, 9).responses[0].partition_responses[0].error_code)


def read(client: RawClient, topic: str, partition: int) -> list[bytes]:
    """All values."""
    values: list[bytes] = []
    while True:
        asked = FetchPartition(partition=partition, fetch_offset=len(values), partition_max_bytes=4 << 20)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=4 << 20, topics=[FetchTopic(topic, partitions=[asked])]
        )
        (found,) = client.ask(request, 11).responses[0].partitions
        assert found.error_code == 0, f"{topic}-{partition}: {ErrorCode(found.error_code).name}"
        if not found.records:
            return values
        for position, header in iter_batches(found.records):
            batch = memoryview(found.records)[position : position + header.size_bytes]
            values += [record.value or b"" for record in iter_records(batch)]
