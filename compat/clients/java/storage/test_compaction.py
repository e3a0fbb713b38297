"""What kbroker compacted is still Kafka's: its own tool reads it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from compat.differential.compaction import scenarios
from compat.differential.compaction.scenarios import SETTINGS, Topic, survivors
from compat.harness.broker import KBrokerProcess
from compat.harness.side import Side
from compat.harness.tools import KafkaTools
from compat.harness.waiting import eventually

from .dumping import accepted, dumped_records


@pytest.fixture
def kbroker() -> Iterator[KBrokerProcess]:
    with KBrokerProcess(SETTINGS) as broker:
        yield broker


def test_kafkas_own_tool_accepts_what_kbroker_compacted(
    kbroker: KBrokerProcess, kafka_tools: KafkaTools
) -> None:
    side = Side(kbroker)
    scenarios.keys_values_and_tombstones(side, "plain")
    scenarios.tombstones_past_their_retention(side, "tombstones")
    scenarios.transactions(side, "transactions")
    topic = Topic(side, "dumped", delete_retention_ms=1)
    chance = random.Random(300)
    topic.append_some(chance, 300)
    topic.fill_a_segment(chance)
    topic.compact()
    topic.append_some(chance, 50)
    topic.fill_a_segment(chance)
    topic.compact()
    expected = len(survivors(topic.batches()))
    eventually(lambda: list(topic.directory.glob("*.deleted")), lambda left: not left)
    side.disconnect()
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
