"""A broker on a disk without room: it starts, serves what it has, and deletes what makes room."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kbroker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.raw_client import RawClient
from tests.support.raw_topics import create, delete, produce, read
from tests.support.server_process import ServerProcess, eventually
from tests.support.small_disk import SmallDisk, small_disk

PARTITIONS = 3


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 12 << 20) as disk:
        yield disk


@pytest.fixture
def server(disk: SmallDisk) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(disk.path / "data")) as server:
        yield server


def commit(client: RawClient, offset: int) -> ErrorCode:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
    topics = [OffsetCommitRequestTopic(name="kept", partitions=partitions)]
    answer = client.ask(OffsetCommitRequest(group_id="group", topics=topics), 5)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def committed(client: RawClient) -> int:
    topics = [OffsetFetchRequestTopic(name="kept", partition_indexes=[0])]
    answer = client.ask(OffsetFetchRequest(group_id="group", topics=topics), 5)
    return int(answer.topics[0].partitions[0].committed_offset)


def write_until_full(client: RawClient, topic: str, size: int) -> dict[int, list[bytes]]:
    """What was acknowledged, by partition."""
    written: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for number in range(10_000):
        value = number.to_bytes(4, "big") + os.urandom(size)
        error = produce(client, topic, number % PARTITIONS, value)
        if error is not ErrorCode.NONE:
            assert error is ErrorCode.KAFKA_STORAGE_ERROR
            return written
        written[number % PARTITIONS].append(value)
    raise AssertionError("the disk has no end")


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("filled", ["while it ran", "before it started"])
def test_it_starts_reads_and_deletes_without_room_and_writes_once_there_is_some(
    disk: SmallDisk, server: ServerProcess, end: str, filled: str
) -> None:
    with server.client() as client:
        assert create(client, "kept", PARTITIONS, segment_bytes=str(1 << 20)) is ErrorCode.NONE
        assert create(client, "doomed", PARTITIONS, file_delete_delay_ms="1") is ErrorCode.NONE
        for partition in range(PARTITIONS):
            assert produce(client, "doomed", partition, bytes(1_000_000)) is ErrorCode.NONE
        client.ask(FindCoordinatorRequest(key="group", key_type=0), 1)
        assert commit(client, 1) is ErrorCode.NONE
        written = write_until_full(client, "kept", 20_000)
        assert commit(client, 2) in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        offset = committed(client)
    if filled == "while it ran":
        disk.fill()
    if end == "stop":
        assert server.stop() == 0
    else:
        server.kill()
    disk.fill()
    assert disk.free_bytes == 0
    server.start()
    with server.client() as client:
        assert {partition: read(client, "kept", partition) for partition in written} == written
        assert [len(read(client, "doomed", partition)) for partition in range(PARTITIONS)] == [1, 1, 1]
        assert committed(client) == offset
        for partition in range(PARTITIONS):
            assert produce(client, "kept", partition, bytes(20_000)) is ErrorCode.KAFKA_STORAGE_ERROR
        assert delete(client, "doomed") is ErrorCode.NONE
        eventually(lambda: disk.free_bytes >= PARTITIONS * 1_000_000)
        for partition in range(PARTITIONS):
            assert produce(client, "kept", partition, b"again") is ErrorCode.NONE
        assert {partition: read(client, "kept", partition)[:-1] for partition in written} == written
        assert commit(client, 3) is ErrorCode.NONE
    log = server.log()
    assert "Traceback" not in log
    assert "fenced" not in log
    assert server.stop() == 0
    server.start()
    with server.client() as client:
        assert {partition: read(client, "kept", partition)[:-1] for partition in written} == written
        assert committed(client) == 3
        assert create(client, "doomed", PARTITIONS) is ErrorCode.NONE


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_retention_makes_room_where_there_was_none_at_the_start(
    disk: SmallDisk, server: ServerProcess, end: str
) -> None:
    with server.client() as client:
        create(
            client,
            "expired",
            PARTITIONS,
            file_delete_delay_ms="1",
            retention_ms="-1",
            segment_bytes=str(1 << 20),
        )
        for number in range(7):
            assert produce(client, "expired", 0, bytes(1_000_000), timestamp=number) is ErrorCode.NONE
    disk.fill()
    if end == "stop":
        server.stop()
    else:
        server.kill()
    disk.fill()
    quick = ("--set", "log.initial.task.delay.ms=1", "--set", "log.retention.check.interval.ms=100")
    with ServerProcess(*server.arguments, *quick) as again, again.client() as client:
        assert produce(client, "expired", 0, bytes(1_000_000)) is ErrorCode.KAFKA_STORAGE_ERROR
        entry = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
        resource = AlterConfigsResource(resource_type=2, resource_name="expired", configs=[entry])
        answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0
        eventually(lambda: produce(client, "expired", 0, bytes(1_000_000)) is ErrorCode.NONE)
        assert "Traceback" not in again.log()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_catalog_without_reserved_room_lets_logs_be_read_and_holds_appends_until_there_is_room(
    disk: SmallDisk, server: ServerProcess, end: str
) -> None:
    with server.client() as client:
        create(client, "kept", PARTITIONS)
        assert produce(client, "kept", 0, b"value") is ErrorCode.NONE
    server.kill()
    with closing(sqlite3.connect(disk.path / "data" / "catalog.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # and without a log, as kbroker left it once
    disk.fill()
    server.start()
    with server.client() as client:
        assert read(client, "kept", 0) == [b"value"]
        assert "no log takes records until there is room" in server.log()
        # There may be room for a few bytes where the log ends, but the new leader epoch is not noted.
        assert produce(client, "kept", 0, b"small") is ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(client, "kept", 1, b"small") is ErrorCode.KAFKA_STORAGE_ERROR
        if end == "stop":
            server.stop()
            server.start()
        disk.empty()
    with server.client() as client:
        eventually(lambda: produce(client, "kept", 0, b"again") is ErrorCode.NONE)
        assert read(client, "kept", 0) == [b"value", b"again"]
        assert "Traceback" not in server.log()
    server.stop()
    server.start()
    with server.client() as client:
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=0)
        topics = [OffsetForLeaderTopic(topic="kept", partitions=[asked])]
        answer = client.ask(OffsetForLeaderEpochRequest(topics=topics), 3)
        assert answer.topics[0].partitions[0].end_offset == 1  # what came after the crash has another epoch
