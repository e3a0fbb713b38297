"""Records that are compacted, and what is left of them, on one broker.

Topics take records under cleanup.policy=delete and are then switched to compact, so that all brokers compact
the same ranges in the same number of runs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat.differential.recordings import NOW
from compat.harness.raw_producer import RawProducer, find_coordinators
from compat.harness.side import Side
from compat.harness.waiting import eventually
from kbroker.protocol.records import Record, build_batch, iter_batches, iter_records

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",
    "log.cleaner.dedupe.buffer.size": "4194304",
}
START_MS = NOW - 60_000
KEYS = [b"key %d" % number for number in range(40)]
CHECKPOINT = "cleaner-offset-checkpoint"

Batches = list[dict[str, Any]]


@dataclass
class Topic:
    """A topic on one of the brokers."""

    side: Side
    name: str
    delete_retention_ms: int = 3_600_000
    segment_bytes: int = 4000

    def __post_init__(self) -> None:
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
        return self.side.server.data / f"{self.name}-0"

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
        path = self.side.server.data / CHECKPOINT
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


def keys_values_and_tombstones(side: Side, name: str) -> list[Batches]:
    """What is left after each of three rounds."""
    topic = Topic(side, name)
    found = []
    for round_ in range(3):
        chance = random.Random(round_)
        topic.append_some(chance, 60)
        topic.fill_a_segment(chance)
        before = len(survivors(topic.batches()))
        topic.compact()
        found.append(topic.batches())
        assert len(survivors(found[-1])) < before
    return found


def tombstones_past_their_retention(side: Side, name: str) -> list[Batches]:
    topic = Topic(side, name, delete_retention_ms=1)
    found = []
    for round_ in range(3):
        chance = random.Random(100 + round_)
        topic.append_some(chance, 40)
        topic.fill_a_segment(chance)
        topic.compact()
        found.append(topic.batches())
    assert any(record[2] is None for record in survivors(found[-1]))
    return found


def transactions(side: Side, name: str) -> list[Batches]:
    topic = Topic(side, name, delete_retention_ms=1)
    find_coordinators(side)
    producers = [RawProducer(side, f"{name}-{number}") for number in range(2)]
    sequences: dict[tuple[int, int], int] = {}
    for producer in producers:
        assert producer.init() == 0
    found = []
    for round_ in range(4):
        chance = random.Random(200 + round_)
        for _ in range(12):
            number = chance.randrange(2)
            producer = producers[number]
            assert producer.add(name) == 0
            for _ in range(chance.randrange(1, 4)):
                records = topic.records(chance)
                key = (number, producer.epoch)
                data = build_batch(
                    records,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    base_sequence=sequences.get(key, 0),
                    transactional=True,
                )
                code, _ = producer.produce_batches({0: data}, name, 9, producer.transactional_id)
                assert code == 0
                sequences[key] = sequences.get(key, 0) + len(records)
                if chance.random() < 0.3:
                    topic.append(topic.records(chance))
            assert producer.end(commit=chance.random() < 0.5) == 0
        topic.fill_a_segment(chance)
        topic.compact()
        found.append(topic.batches())
    return found
