"""The same records through kbroker and Apache Kafka, both compacted: what survives is the same.

Topics take records under cleanup.policy=delete and are then switched to compact, so that both brokers compact
the same ranges in the same number of runs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import Server
from compat.harness.kafka import RealKafka
from compat.harness.raw_producer import RawProducer
from compat.harness.side import Side
from compat.harness.tools import KafkaTools
from compat.harness.waiting import eventually
from kbroker.protocol.records import Record, build_batch, iter_batches, iter_records

from .dumping import accepted, dumped_records

pytestmark = pytest.mark.java

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",
    "log.cleaner.dedupe.buffer.size": "4194304",
}
START_MS = int(time.time() * 1000) - 60_000
KEYS = [b"key %d" % number for number in range(40)]
CHECKPOINT = "cleaner-offset-checkpoint"


@pytest.fixture(scope="module")
def kbroker() -> Iterator[KBrokerProcess]:
    with KBrokerProcess(SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def apache() -> Iterator[RealKafka]:
    with RealKafka(SETTINGS) as kafka:
        yield kafka


@dataclass
class Topic:
    """A topic on one of the brokers."""

    server: Server
    name: str
    segment_bytes: int
    delete_retention_ms: int

    def __post_init__(self) -> None:
        self.side = Side(self.server)
        self.side.create_topic(
            self.name,
            **{
                "internal.segment.bytes": str(self.segment_bytes),
                "min.cleanable.dirty.ratio": "0.0",
                "delete.retention.ms": str(self.delete_retention_ms),
                "index.interval.bytes": "200",
                "file.delete.delay.ms": "0",
            },
        )
        self.clock_ms = START_MS

    @property
    def directory(self) -> Path:
        return self.server.data / f"{self.name}-0"

    def append(self, records: list[Record], **fields: Any) -> None:
        appended = self.side.produce(self.name, build_batch(records, **fields))
        assert appended["ErrorCode"] == 0, appended

    def append_some(self, chance: random.Random, batches: int) -> None:
        for _ in range(batches):
            self.append(self.records(chance), codec=chance.randrange(5))

    def records(self, chance: random.Random) -> list[Record]:
        self.clock_ms += 1
        records = []
        for _ in range(chance.randrange(1, 8)):
            key = chance.choice(KEYS) if chance.random() < 0.95 else None
            value = None if chance.random() < 0.2 else chance.randbytes(chance.randrange(60)).hex().encode()
            headers = (("h", b"1"),) if chance.random() < 0.2 else ()
            records.append(Record(self.clock_ms + chance.randrange(3), key, value, headers))
        return records

    def fill_a_segment(self, chance: random.Random) -> None:
        """End the active segment."""
        bases = self._bases()
        while self._bases() == bases:
            self.append(self.records(chance))

    def _bases(self) -> list[int]:
        return sorted(int(path.stem) for path in self.directory.glob("*.log"))

    def compact(self) -> None:
        """Have everything but the active segment compacted."""
        self._alter("cleanup.policy", "compact")
        active = self._bases()[-1]
        eventually(self._compacted_up_to, lambda offset: offset >= active, seconds=60)
        self._alter("cleanup.policy", "delete")

    def _compacted_up_to(self) -> int:
        path = self.server.data / CHECKPOINT
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        offsets = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}
        return offsets.get(f"{self.name} 0", -1)

    def _alter(self, name: str, value: str) -> None:
        resource = {
            "ResourceType": 2,
            "ResourceName": self.name,
            "Configs": [{"Name": name, "ConfigOperation": 0, "Value": value}],
        }
        (answer,) = self.side.raw("IncrementalAlterConfigs", 1, {"Resources": [resource]})["Responses"]
        assert answer["ErrorCode"] == 0, answer

    def batches(self) -> list[dict[str, Any]]:
        """Every batch with its records, as a consumer fetches them."""
        found = []
        offset = 0
        while data := self._fetch(offset):
            for position, header in iter_batches(data):
                content = memoryview(data)[position : position + header.size_bytes]
                found.append(
                    {
                        "offsets": (header.base_offset, header.last_offset),
                        "codec": header.codec,
                        "control": header.is_control,
                        "transactional": header.is_transactional,
                        "sequence": header.base_sequence,
                        "max timestamp": None if header.is_control else header.max_timestamp,
                        "delete horizon": header.delete_horizon_ms is not None,
                        "records": [] if header.is_control else [tuple(r) for r in iter_records(content)],
                        "count": header.record_count,
                    }
                )
                offset = header.next_offset
        return found

    def _fetch(self, offset: int) -> bytes:
        wanted = {"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
        values = {
            "MaxWaitMs": 0,
            "MinBytes": 0,
            "MaxBytes": 1 << 22,
            "Topics": [{"Topic": self.name, "Partitions": [wanted]}],
        }
        (topic,) = self.side.raw("Fetch", 11, values)["Responses"]
        (partition,) = topic["Partitions"]
        assert partition["ErrorCode"] == 0
        data = bytes(partition["Records"] or b"")
        assert len(data) < 1 << 20  # never cut within a batch
        return data


def survivors(batches: list[dict[str, Any]]) -> list[Any]:
    return [record for batch in batches for record in batch["records"]]


def both(kbroker: Server, apache: Server, name: str, **options: int) -> list[Topic]:
    options = {"segment_bytes": 4000, "delete_retention_ms": 3_600_000, **options}
    return [Topic(server, name, **options) for server in (apache, kbroker)]


def test_keys_values_and_tombstones_survive_as_in_kafka(kbroker: KBrokerProcess, apache: RealKafka) -> None:
    topics = both(kbroker, apache, "plain")
    for round_ in range(3):
        found = []
        for topic in topics:
            chance = random.Random(round_)
            topic.append_some(chance, 60)
            topic.fill_a_segment(chance)
            before = len(survivors(topic.batches()))
            topic.compact()
            found.append(topic.batches())
            assert len(survivors(found[-1])) < before
        assert found[1] == found[0]


def test_tombstones_go_after_delete_retention_as_in_kafka(kbroker: KBrokerProcess, apache: RealKafka) -> None:
    topics = both(kbroker, apache, "tombstones", delete_retention_ms=1)
    for round_ in range(3):
        found = []
        for topic in topics:
            chance = random.Random(100 + round_)
            topic.append_some(chance, 40)
            topic.fill_a_segment(chance)
            topic.compact()
            found.append(topic.batches())
        assert found[1] == found[0]
    assert any(record[2] is None for record in survivors(found[0]))


def test_transactions_and_producers_survive_as_in_kafka(kbroker: KBrokerProcess, apache: RealKafka) -> None:
    topics = both(kbroker, apache, "transactions", delete_retention_ms=1)
    producers = [[RawProducer(topic.side, f"compaction-{number}") for number in range(2)] for topic in topics]
    sequences: dict[tuple[int, int, int], int] = {}
    for producer in (one for each in producers for one in each):
        find = {"Key": producer.transactional_id, "KeyType": 1}
        eventually(lambda: producer.side.raw("FindCoordinator", 3, find)["ErrorCode"] == 0)  # noqa: B023
        assert producer.init() == 0
    for round_ in range(4):
        found = []
        for index, topic in enumerate(topics):
            chance = random.Random(200 + round_)
            for _ in range(12):
                number = chance.randrange(2)
                producer = producers[index][number]
                assert producer.add(topic.name) == 0
                for _ in range(chance.randrange(1, 4)):
                    records = topic.records(chance)
                    key = (index, number, producer.epoch)
                    data = build_batch(
                        records,
                        producer_id=producer.producer_id,
                        producer_epoch=producer.epoch,
                        base_sequence=sequences.get(key, 0),
                        transactional=True,
                    )
                    code, _ = producer.produce_batches({0: data}, topic.name, 9, producer.transactional_id)
                    assert code == 0
                    sequences[key] = sequences.get(key, 0) + len(records)
                    if chance.random() < 0.3:
                        topic.append(topic.records(chance))
                assert producer.end(commit=chance.random() < 0.5) == 0
            topic.fill_a_segment(chance)
            topic.compact()
            found.append(topic.batches())
        assert found[1] == found[0]


def test_kafkas_own_tool_accepts_what_kbroker_compacted(
    kbroker: KBrokerProcess, kafka_tools: KafkaTools
) -> None:
    (topic,) = [Topic(kbroker, "dumped", 4000, 1)]
    chance = random.Random(300)
    topic.append_some(chance, 300)
    topic.fill_a_segment(chance)
    topic.compact()
    topic.append_some(chance, 50)
    topic.fill_a_segment(chance)
    topic.compact()
    expected = len(survivors(topic.batches()))
    eventually(lambda: list(topic.directory.glob("*.deleted")), lambda left: not left)
    topic.side.disconnect()
    kbroker.restart()
    assert len(survivors(topic.batches())) == expected
    assert kbroker.stop() == 0
    for name in ("plain", "tombstones", "transactions", "dumped"):
        directory = kbroker.data / f"{name}-0"
        segments = sorted(directory.glob("*.log"))
        count = dumped_records(kafka_tools, segments)
        if name == "dumped":
            assert count == expected
        for suffix in (".index", ".timeindex"):
            files = sorted(directory.glob(f"*{suffix}"))
            assert len(files) == len(segments)
            accepted(kafka_tools, files, "--index-sanity-check")
            accepted(kafka_tools, files, "--verify-index-only")
        indexes = sorted(directory.glob("*.txnindex"))
        if indexes:
            accepted(kafka_tools, indexes)
