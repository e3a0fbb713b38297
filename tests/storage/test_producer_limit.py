from __future__ import annotations

import logging

import pytest

from kbroker.protocol.records import Record, build_batch
from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.partition.producer_limit import CHECK_INTERVAL_MS

NOW_MS = 1_700_000_000_000
LIMIT = 100


@pytest.fixture
def directory() -> MemoryDirectory:
    return MemoryDirectory(now_ms=NOW_MS, settings=DirectoryConfig(max_producer_ids=LIMIT))


def append(
    directory: MemoryDirectory, topic: str, producer_id: int, *, sequence: int = 0, open: bool = False
) -> bool:
    """Whether the batch was there already."""
    log = directory.log(bytes(16), topic, 0, LogConfig(), 0)
    batch = build_batch(
        [Record(NOW_MS + producer_id, None, b"x")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=open,
    )
    return log.append_as_leader(memoryview(bytearray(batch)), NOW_MS).duplicate


def known(directory: MemoryDirectory, topic: str) -> list[int]:
    log = directory.log(bytes(16), topic, 0, LogConfig(), 0)
    return sorted(state.producer_id for state in log.producers())


def test_the_oldest_producers_of_the_log_with_the_most_are_forgotten(
    directory: MemoryDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    for producer_id in range(20):
        append(directory, "few", producer_id)
    for producer_id in range(1000, 1000 + LIMIT):
        append(directory, "many", producer_id)
    with caplog.at_level(logging.WARNING):
        directory.tick(NOW_MS + CHECK_INTERVAL_MS)
    assert known(directory, "few") == list(range(20))
    assert known(directory, "many") == list(range(1030, 1100))
    assert "forgetting the 30 oldest" in caplog.text
    assert append(directory, "many", 1099)  # is still recognised
    assert not append(directory, "many", 1000, sequence=7)  # may go on, wherever it is


def test_up_to_the_limit_nobody_is_forgotten(directory: MemoryDirectory) -> None:
    for producer_id in range(LIMIT):
        append(directory, "t", producer_id)
    directory.tick(NOW_MS + CHECK_INTERVAL_MS)
    assert len(known(directory, "t")) == LIMIT


def test_an_open_transaction_is_never_forgotten(directory: MemoryDirectory) -> None:
    append(directory, "t", 0, open=True)
    for producer_id in range(1, LIMIT + 10):
        append(directory, "t", producer_id)
    directory.tick(NOW_MS + CHECK_INTERVAL_MS)
    assert known(directory, "t")[0] == 0
    assert len(known(directory, "t")) == LIMIT * 9 // 10
