from __future__ import annotations

import gzip
import os

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.telemetry import files as telemetry_files
from tests.observability.client_metrics.pushed import gauge, metrics_data

from .telemetry_client import TelemetryClient, stored

METRICS, FIRST, SECOND = (metrics_data(gauge("number", number)) for number in range(3))


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "metrics"


@pytest.fixture
def settings(directory):
    return {"node.id": "1", "kbroker.telemetry.directory": str(directory), "telemetry.max.bytes": "1000"}


@pytest.fixture
def client(cluster):
    return TelemetryClient(cluster)


@pytest.mark.parametrize(
    ("compression_type", "payload"), [(0, METRICS), (1, gzip.compress(METRICS))], ids=["none", "gzip"]
)
def test_a_push_is_stored(directory, client, compression_type, payload):
    subscription = client.subscribe()
    assert client.push(subscription, payload, compression_type=compression_type) == ErrorCode.NONE
    assert stored(directory, subscription) == METRICS


def test_the_last_push_of_a_client_replaces_the_one_before(cluster, directory, client):
    subscription = client.subscribe()
    client.push(subscription, FIRST)
    cluster.now_ms += subscription.push_interval_ms
    assert client.push(subscription, SECOND) == ErrorCode.NONE
    assert stored(directory, subscription) == SECOND


def test_only_the_latest_files_are_kept(directory, client, monkeypatch):
    monkeypatch.setattr(telemetry_files, "MAX_FILES", 2)
    for _ in range(4):
        client.push(client.subscribe())
    assert len(list(directory.iterdir())) == 2


def test_an_empty_push_is_taken_and_not_stored(directory, client):
    assert client.push(client.subscribe(), b"") == ErrorCode.NONE
    assert not directory.exists()


def test_a_push_before_the_interval_is_over_is_throttled(cluster, client):
    subscription = client.subscribe()
    assert client.push(subscription) == ErrorCode.NONE
    assert client.push(subscription) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster.now_ms += subscription.push_interval_ms
    assert client.push(subscription) == ErrorCode.NONE


def test_the_last_push_of_a_client_may_come_early_and_nothing_after_it(client):
    subscription = client.subscribe()
    client.push(subscription)
    assert client.push(subscription, terminating=True) == ErrorCode.NONE
    assert client.push(subscription) == ErrorCode.INVALID_REQUEST
    assert client.subscribe(subscription.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_after_a_refused_push_a_client_may_ask_again_at_once(cluster, client):
    subscription = client.subscribe()
    cluster.now_ms += 1
    assert (
        client.push(subscription, subscription_id=subscription.subscription_id ^ 1)
        == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    )
    assert client.subscribe(subscription.client_instance_id).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("metrics", "fields", "code"),
    [
        (METRICS, {"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (bytes(1001), {}, ErrorCode.TELEMETRY_TOO_LARGE),
        (b"not gzip", {"compression_type": 1}, ErrorCode.INVALID_RECORD),
        (b"not protobuf", {}, ErrorCode.INVALID_RECORD),
        (
            gzip.compress(bytes(100_000)),
            {"compression_type": 1},
            ErrorCode.INVALID_RECORD,
        ),
        (METRICS, {"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        (METRICS, {"client_instance_id": bytes(15) + b"\1"}, ErrorCode.INVALID_REQUEST),
        (METRICS, {"client_instance_id": os.urandom(16)}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
    ],
    ids=["codec", "too large", "corrupt", "garbage", "bomb", "zero id", "reserved id", "unknown id"],
)
def test_a_push_that_is_wrong_is_refused(directory, client, metrics, fields, code):
    assert client.push(client.subscribe(), metrics, **fields) == code
    assert not directory.exists()
