from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbroker.operations.auditing import audited
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.resources import Resources
from kbroker.security.principal import Principal
from tests.handlers.conftest import Cluster


class Alice:
    principal = Principal("User", "alice")
    peer_host = "192.0.2.1"
    api_name = "POST /topics"
    throttle = None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def resources(file: Path) -> Resources:
    return Cluster({"node.id": "1", "kbroker.audit.log.file": str(file)}).broker.resources(Alice())


def told(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_change_is_told_once_it_is_made(file: Path, resources: Resources) -> None:
    made: Pending[int] = Pending()
    later = audited(resources, "TOPIC", "t", lambda: made, {"partitions": 1})
    assert told(file) == []
    made.resolve(7)
    assert isinstance(later, Pending)
    assert later.result() == 7
    (event,) = told(file)
    del event["time"]
    assert event == {
        "event": "change",
        "principal": "User:alice",
        "address": "192.0.2.1",
        "api": "POST /topics",
        "resource_type": "TOPIC",
        "resource": "t",
        "outcome": "success",
        "details": {"partitions": 1},
    }


def test_a_change_that_is_refused_at_once_is_told_with_its_code(file: Path, resources: Resources) -> None:
    def refuse() -> None:
        raise ApiError(ErrorCode.INVALID_PARTITIONS)

    with pytest.raises(ApiError):
        audited(resources, "TOPIC", "t", refuse)
    assert [event["outcome"] for event in told(file)] == ["INVALID_PARTITIONS"]


def test_a_change_that_fails_later_is_told_with_its_code(file: Path, resources: Resources) -> None:
    made: Pending[int] = Pending()
    later = audited(resources, "TOPIC", "t", lambda: made)
    made.fail(ApiError(ErrorCode.TOPIC_ALREADY_EXISTS))
    assert isinstance(later, Pending)
    assert not later.succeeded
    assert [event["outcome"] for event in told(file)] == ["TOPIC_ALREADY_EXISTS"]


def test_a_change_that_nobody_waits_for_is_told_without_its_end(file: Path, resources: Resources) -> None:
    later = audited(resources, "TOPIC", "t", Pending)
    assert isinstance(later, Pending)
    later.abandon()
    assert [event["outcome"] for event in told(file)] == ["unknown"]


def test_without_an_audit_log_the_change_is_made_as_it_is() -> None:
    made: Pending[int] = Pending()
    resources = Cluster({"node.id": "1"}).broker.resources(Alice())
    assert audited(resources, "TOPIC", "t", lambda: made) is made
