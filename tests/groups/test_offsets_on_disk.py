"""Offset commits to a real process: what was answered survives kill -9; a full disk is told and gets over."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.catalog.sqlite.file_names import OFFSET_JOURNALS
from kbroker.cli import main
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess, eventually

pytestmark = pytest.mark.slow

TOPIC = "orders"
MODES = pytest.mark.parametrize("mode", [(), ("--fsync",)], ids=["default", "fsync"])


def create_topic(client: RawClient) -> None:
    topics = [CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]
    client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)


def send_commit(client: RawClient, group: str, offset: int) -> None:
    topics = [OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, offset)])]
    client.send(OffsetCommitRequest(group_id=group, topics=topics), 8)


def received(client: RawClient) -> int:
    return client.receive().topics[0].partitions[0].error_code


def commit(client: RawClient, group: str, offset: int) -> int:
    send_commit(client, group, offset)
    return received(client)


@contextlib.contextmanager
def clients(server: ServerProcess, groups: list[str]) -> Iterator[dict[str, RawClient]]:
    """One for each group."""
    with contextlib.ExitStack() as stack:
        yield {group: stack.enter_context(server.client()) for group in groups}


def commit_at_once(clients: dict[str, RawClient], offset: int) -> set[int]:
    for group, client in clients.items():
        send_commit(client, group, offset)
    return {received(client) for client in clients.values()}


def committed(client: RawClient, group: str) -> int:
    request = OffsetFetchRequest(group_id=group, topics=[OffsetFetchRequestTopic(TOPIC, [0])])
    return client.ask(request, 7).topics[0].partitions[0].committed_offset


@MODES
@pytest.mark.parametrize("later", [(), ("--fsync",)], ids=["then default", "then fsync"])
def test_an_answered_commit_survives_kill_9(
    tmp_path: Path, mode: tuple[str, ...], later: tuple[str, ...]
) -> None:
    groups = [f"group-{number}" for number in range(20)]
    with ServerProcess("--data", str(tmp_path), *mode) as server:
        with server.client() as client:
            create_topic(client)
            for cycle in range(3):
                for group in groups:
                    assert commit(client, group, cycle * 10) == ErrorCode.NONE
        server.kill()
    with ServerProcess("--data", str(tmp_path), *later) as server:
        with server.client() as client:
            assert {committed(client, group) for group in groups} == {20}
            assert commit(client, groups[0], 30) == ErrorCode.NONE
        server.kill()
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        assert committed(client, groups[0]) == 30
        assert committed(client, groups[1]) == 20


@MODES
def test_what_was_answered_of_commits_that_came_together_survives_kill_9(
    tmp_path: Path, mode: tuple[str, ...]
) -> None:
    groups = [f"group-{number}" for number in range(50)]
    with ServerProcess("--data", str(tmp_path), *mode) as server:
        with server.client() as client:
            create_topic(client)
        with clients(server, groups) as committing:
            for cycle in range(5):
                assert commit_at_once(committing, cycle) == {ErrorCode.NONE}
            for group, client in committing.items():
                send_commit(client, group, 5)
            answered = groups[:5]
            assert {received(committing[group]) for group in answered} == {ErrorCode.NONE}
            server.kill()
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        assert {committed(client, group) for group in answered} == {5}
        assert {committed(client, group) for group in groups} <= {4, 5}


@pytest.mark.parametrize("room_bytes", [0, 100])
def test_commits_that_came_together_and_found_no_room_leave_nothing(tmp_path: Path, room_bytes: int) -> None:
    groups = [f"group-{number}" for number in range(20)]
    with ServerProcess("--data", str(tmp_path)) as server:
        with server.client() as client:
            create_topic(client)
        with clients(server, groups) as committing:
            assert commit_at_once(committing, 1) == {ErrorCode.NONE}
            _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
            size_bytes = max((tmp_path / name).stat().st_size for name in OFFSET_JOURNALS)
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size_bytes + room_bytes, hard))
            eventually(lambda: ErrorCode.COORDINATOR_NOT_AVAILABLE in commit_at_once(committing, 2))
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, hard))
            before = {group: committed(client, group) for group, client in committing.items()}
            assert commit_at_once(committing, 3) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
            assert {group: committed(client, group) for group, client in committing.items()} == before
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
            assert commit_at_once(dict(list(committing.items())[:10]), 4) == {ErrorCode.NONE}
        server.kill()
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        assert {committed(client, group) for group in groups[:10]} == {4}
        assert all(committed(client, group) == before[group] for group in groups[10:])


@MODES
def test_a_full_disk_is_retriable_and_gets_over(tmp_path: Path, mode: tuple[str, ...]) -> None:
    with ServerProcess("--data", str(tmp_path), *mode) as server:
        with server.client() as client:
            create_topic(client)
            assert commit(client, "group", 1) == ErrorCode.NONE
            _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, hard))  # no file can grow
            assert commit(client, "group", 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert committed(client, "group") == 1
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
            eventually(lambda: commit(client, "group", 3) == ErrorCode.NONE)
            assert committed(client, "group") == 3
        server.kill()
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        assert committed(client, "group") == 3


@pytest.mark.parametrize("injury", ["flip", "cut", "empty", "delete"])
def test_commits_that_the_files_lost_are_told_of(
    tmp_path: Path, injury: str, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = [f"group-{number}" for number in range(20)]
    noted: list[Path] = []
    for _ in range(20):  # until it is killed before the catalog has them
        with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
            create_topic(client)
            for group in groups:
                assert commit(client, group, 7) == ErrorCode.NONE
            server.kill()
        noted = [tmp_path / name for name in OFFSET_JOURNALS if (tmp_path / name).stat().st_size]
        if noted:
            break
    path = noted[-1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if injury == "delete":
        path.unlink()
    else:
        path.write_bytes({"flip": content, "cut": content[:-20], "empty": b""}[injury])
    assert main(["verify", str(tmp_path)]) == 4
    assert path.name in capsys.readouterr().out
    with ServerProcess("--data", str(tmp_path)) as server, server.client() as client:
        assert "that had been acknowledged are gone" in server.log()
        assert {committed(client, group) for group in groups} <= {7, -1}
