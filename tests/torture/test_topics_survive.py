"""No half topic, wherever the broker is killed: what was acknowledged holds, the rest is whole or absent."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess

PARTITIONS = 3


@pytest.mark.slow
def test_topics_are_whole_after_kill_9_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(5)
    expected: dict[str, bool] = {}  # acknowledged: there, or gone
    unsure: set[str] = set()
    with ServerProcess("--data", str(tmp_path / "data")) as server:
        for cycle in range(12):
            killer = threading.Timer(0.02 + chance.random() * 0.15, server.kill)
            with server.client() as client:
                killer.start()
                _work(client, cycle, expected, unsure)
            killer.join()
            server.start()
            with server.client() as client:
                _check(client, expected, unsure)
        assert server.stop() == 0
    assert any(expected.values())


def _work(client: RawClient, cycle: int, expected: dict[str, bool], unsure: set[str]) -> None:
    """Create, fill and delete topics until the broker is gone."""
    try:
        for number in range(10_000):
            name = f"topic-{cycle}-{number}"
            unsure.add(name)
            topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
            assert client.ask(CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code == 0
            expected[name] = True
            unsure.discard(name)
            assert client.ask(_produce(name), 9).responses[0].partition_responses[0].error_code == 0
            if number % 2:
                unsure.add(name)
                answer = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5)
                assert answer.responses[0].error_code == 0
                expected[name] = False
                unsure.discard(name)
    except (Closed, ConnectionError):
        return
    raise AssertionError("the broker was not killed")


def _check(client: RawClient, expected: dict[str, bool], unsure: set[str]) -> None:
    there = {topic.name: topic for topic in client.ask(MetadataRequest(topics=None), 9).topics}
    for name, exists in expected.items():
        if name not in unsure:
            assert (name in there) == exists, name
    for name in unsure:
        expected[name] = name in there
    unsure.clear()
    for name, topic in there.items():
        assert name in expected
        assert len(topic.partitions) == PARTITIONS
    for name in list(there)[-3:]:
        assert client.ask(_produce(name), 9).responses[0].partition_responses[0].error_code == 0


def _produce(topic: str) -> ProduceRequest:
    records = memoryview(build_batch([Record(timestamp=1, key=None, value=b"x")]))
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(topic, partition_data=[data])]
    )
