"""The audit log: what is written, what is counted only, and what happens when it cannot be written."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbroker.security import audit
from kbroker.security.acls import AclOperation, AclResourceType
from kbroker.security.audit import FAILURE, SUCCESS, AuditLog
from kbroker.security.audit_file import AuditFile
from kbroker.security.principal import Principal
from kbroker.storage.worker import InlineWorker
from tests.handlers.conftest import ManualScheduler

ALICE = Principal("User", "alice")


class Opened:
    def __init__(self, path: Path, max_bytes: int = 1 << 20, backups: int = 3) -> None:
        self.path = path
        self.now_ms = 1_700_000_000_000
        self.scheduler = ManualScheduler()
        file = AuditFile(path, max_bytes, backups)
        self.log = AuditLog(file, InlineWorker(), self.scheduler, lambda: self.now_ms)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def refuse(self, topic: str = "secret") -> None:
        self.log.refusal(
            principal=ALICE,
            address="10.0.0.1",
            api="Produce",
            operation=AclOperation.WRITE,
            resource_type=AclResourceType.TOPIC,
            resource=topic,
        )

    def login(self, outcome: str, reason: str | None = None) -> None:
        self.log.login(
            principal=ALICE,
            address="10.0.0.1",
            listener="SASL_SSL",
            mechanism="PLAIN",
            outcome=outcome,
            reason=reason,
        )

    def change(self, topic: str) -> None:
        self.log.change(
            principal=ALICE,
            address="10.0.0.1",
            api="CreateTopics",
            resource_type="TOPIC",
            resource=topic,
            outcome=SUCCESS,
            details={"partitions": 3},
        )


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path / "logs" / "audit.log")


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    audit.events.setLevel(logging.INFO)
    yield
    audit.events.setLevel(logging.NOTSET)


def test_an_event_is_a_line_of_json_with_its_time(opened: Opened) -> None:
    opened.login(SUCCESS)
    opened.change("orders")
    login, change = opened.lines()
    assert login == {
        "time": "2023-11-14T22:13:20.000+00:00",
        "event": "login",
        "principal": "User:alice",
        "address": "10.0.0.1",
        "listener": "SASL_SSL",
        "mechanism": "PLAIN",
        "outcome": "success",
    }
    assert (change["event"], change["resource"], change["details"]) == ("change", "orders", {"partitions": 3})


def test_only_its_owner_may_read_the_file(opened: Opened) -> None:
    opened.login(SUCCESS)
    assert opened.path.stat().st_mode & 0o777 == 0o600


def test_a_refusal_that_repeats_is_written_once_a_minute_with_its_number(opened: Opened) -> None:
    for _ in range(1000):
        opened.refuse()
    opened.refuse("other")
    assert [line["resource"] for line in opened.lines()] == ["secret", "other"]
    opened.now_ms += 60_000
    opened.refuse()
    repeated, again = opened.lines()[2:]
    assert (repeated["resource"], repeated["repeated"]) == ("secret", 999)
    assert again["resource"] == "secret"
    assert "repeated" not in again


def test_failed_logins_that_repeat_are_counted_and_told_at_the_end(opened: Opened) -> None:
    for _ in range(10):
        opened.login(FAILURE, "the password is wrong")
    opened.log.close().result()
    first, repeated = opened.lines()
    assert first["reason"] == "the password is wrong"
    assert repeated["repeated"] == 9


def test_what_is_remembered_of_refusals_is_bounded(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_MOST_REFUSALS", 10)
    for number in range(100):
        opened.refuse(f"topic-{number}")
    assert len(opened.log._refusals) <= 10


def test_the_file_is_rotated_by_size_and_the_oldest_goes(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "audit.log", max_bytes=1024, backups=2)
    for number in range(50):
        opened.change(f"topic-{number}")
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(file.stat().st_size <= 1024 for file in tmp_path.iterdir())
    found = [
        json.loads(line)["resource"]
        for file in ("audit.log.2", "audit.log.1", "audit.log")
        for line in (tmp_path / file).read_text().splitlines()
    ]
    assert found == [f"topic-{number}" for number in range(50 - len(found), 50)]


def test_without_backups_the_file_begins_anew(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "audit.log", max_bytes=1024, backups=0)
    for number in range(50):
        opened.change(f"topic-{number}")
    assert [file.name for file in tmp_path.iterdir()] == ["audit.log"]
    assert opened.lines()[-1]["resource"] == "topic-49"


def test_a_file_that_was_moved_away_is_made_anew(opened: Opened) -> None:
    opened.change("first")
    opened.path.rename(opened.path.with_name("kept"))
    opened.change("second")
    assert [line["resource"] for line in opened.lines()] == ["second"]


def test_what_cannot_be_written_waits_and_is_counted_when_too_much_waits(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit, "_MOST_WAITING", 5)
    opened.path.parent.write_text("")  # where a directory should be
    for number in range(8):
        opened.change(f"topic-{number}")
    assert "the audit log cannot be written" in caplog.text
    assert opened.log.dropped == 3
    opened.path.parent.unlink()
    (retry,) = opened.scheduler.waiting
    retry()
    lines = opened.lines()
    assert [line.get("resource") for line in lines[:5]] == [f"topic-{number}" for number in range(5)]
    assert lines[5] | {"time": ""} == {"time": "", "event": "dropped", "events": 3}


def test_a_long_value_is_cut(opened: Opened) -> None:
    opened.change("x" * 100_000)
    assert len(opened.lines()[0]["resource"]) == 1001


def test_the_level_of_the_logger_leaves_out_what_went_well(opened: Opened) -> None:
    audit.events.setLevel(logging.WARNING)
    opened.login(SUCCESS)
    opened.change("orders")
    opened.login(FAILURE)
    assert [line["outcome"] for line in opened.lines()] == ["failure"]
    audit.events.setLevel(logging.ERROR)
    opened.login(FAILURE, "another")
    assert len(opened.lines()) == 1
