"""The audit log of a real broker."""

from __future__ import annotations

import json
from pathlib import Path

from kbroker.protocol.errors import ErrorCode
from tests.support.raw_topics import create, delete, produce, read
from tests.support.server_process import ServerProcess, eventually
from tests.support.small_disk import small_disk


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_happened_last_is_written_before_the_broker_ends(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "audit.log"
    with ServerProcess("--in-memory", "--set", f"kbroker.audit.log.file={path}") as server:
        with server.client() as client:
            create(client, "t", 1)
            delete(client, "t")
        assert server.stop() == 0
    assert [(line["api"], line["resource"]) for line in lines(path)] == [
        ("CreateTopics", "t"),
        ("DeleteTopics", "t"),
    ]


def test_a_broker_without_an_audit_log_loads_nothing_of_it(tmp_path: Path) -> None:
    with ServerProcess("--in-memory") as server, server.client() as client:
        assert create(client, "t", 1) == ErrorCode.NONE
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_of_the_audit_log_does_not_stop_the_broker(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        path = disk.path / "audit.log"
        disk.fill()
        with ServerProcess("--in-memory", "--set", f"kbroker.audit.log.file={path}") as server:
            with server.client() as client:
                for number in range(20):
                    assert create(client, f"t{number}", 1) == ErrorCode.NONE
                assert produce(client, "t0", 0, b"value") == ErrorCode.NONE
                assert read(client, "t0", 0) == [b"value"]
                eventually(lambda: "the audit log cannot be written" in server.log())
                assert not path.exists() or path.stat().st_size == 0
                disk.empty()
                eventually(lambda: path.exists() and len(lines(path)) == 20)
            assert server.stop() == 0
        assert [line["resource"] for line in lines(path)] == [f"t{number}" for number in range(20)]
