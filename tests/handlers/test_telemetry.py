"""GetTelemetrySubscriptions and PushTelemetry, which depend on each other."""

from __future__ import annotations

import base64
import gzip
import os
from typing import Any

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest
from kbroker.telemetry.opening import files as telemetry_files

TELEMETRY_KEYS = {71, 72}
CLIENT_METRICS = 16


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "metrics"


@pytest.fixture
def settings(directory):
    return {"node.id": "1", "kbroker.telemetry.directory": str(directory), "telemetry.max.bytes": "1000"}


@pytest.fixture
def subscribe(cluster):
    def subscribe(client_instance_id: bytes = bytes(16)):
        return cluster.send(GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id), 0)

    return subscribe


@pytest.fixture
def push(cluster):
    def push(subscription: Any, metrics: bytes = b"metrics", **fields: Any) -> int:
        request = PushTelemetryRequest(
            **{
                "client_instance_id": subscription.client_instance_id,
                "subscription_id": subscription.subscription_id,
                **fields,
            },
            metrics=metrics,
        )
        return cluster.send(request, 0).error_code

    return push


def advertised(cluster) -> set[int]:
    request = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1")
    return {api.api_key for api in cluster.send(request, 4).api_keys}


def alter(cluster, name: str, configs: dict[str, str | None]) -> None:
    """Set what has a value, delete what has none."""
    changes = [AlterableConfig(config, 0 if value else 1, value) for config, value in configs.items()]
    resource = AlterConfigsResource(CLIENT_METRICS, name, changes)
    (answer,) = cluster.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == ErrorCode.NONE


def stored(directory, subscription) -> bytes:
    name = base64.urlsafe_b64encode(subscription.client_instance_id).decode().rstrip("=")
    return (directory / f"{name}.otlp").read_bytes()


class TestWithoutReceiver:
    @pytest.fixture
    def settings(self):
        return {"node.id": "1"}

    def test_telemetry_is_not_offered(self, cluster):
        assert not TELEMETRY_KEYS & advertised(cluster)

    def test_whoever_asks_all_the_same_is_refused(self, cluster, subscribe):
        assert subscribe().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert cluster.send(PushTelemetryRequest(), 0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_telemetry_is_offered_when_it_has_a_receiver(cluster):
    assert advertised(cluster) >= TELEMETRY_KEYS


def test_a_client_gets_an_id_and_without_subscriptions_pushes_nothing(subscribe):
    first, second = subscribe(), subscribe()
    assert first.error_code == ErrorCode.NONE
    assert first.client_instance_id not in (bytes(16), second.client_instance_id)
    assert (first.push_interval_ms, first.telemetry_max_bytes, first.requested_metrics) == (300_000, 1000, [])
    assert first.accepted_compression_types == [4, 3, 1, 2]


def test_a_client_gets_the_metrics_of_all_subscriptions_it_matches(cluster, subscribe):
    advertised(cluster)  # says which software the client is
    alter(
        cluster,
        "java",
        {"metrics": "b.,a.", "interval.ms": "5000", "match": "client_software_name=apache-.*"},
    )
    alter(
        cluster, "here", {"metrics": "a.,c", "match": "client_source_address=127.*,client_source_port=\\d+"}
    )
    alter(cluster, "other", {"metrics": "x", "interval.ms": "100", "match": "client_id=somebody"})
    alter(cluster, "prefix", {"metrics": "x", "interval.ms": "100", "match": "client_id=te"})
    answer = subscribe()
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a.", "b.", "c"], 5000)
    alter(cluster, "all", {"metrics": "*,b."})
    assert subscribe().requested_metrics == ["*"]
    alter(cluster, "all", {"metrics": None})
    alter(cluster, "java", {"metrics": None, "interval.ms": None, "match": None})
    assert subscribe().requested_metrics == ["a.", "c"]


def test_a_change_of_subscriptions_reaches_a_client_at_once_under_a_new_id(cluster, subscribe, push):
    before = subscribe()
    assert subscribe(before.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    alter(cluster, "s", {"metrics": "*"})
    assert push(before) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    after = subscribe(before.client_instance_id)
    assert after.client_instance_id == before.client_instance_id
    assert after.subscription_id != before.subscription_id
    cluster.now_ms += after.push_interval_ms
    assert push(after) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("compression_type", "payload"), [(0, b"metrics"), (1, gzip.compress(b"metrics"))], ids=["none", "gzip"]
)
def test_a_push_is_stored(directory, subscribe, push, compression_type, payload):
    subscription = subscribe()
    assert push(subscription, payload, compression_type=compression_type) == ErrorCode.NONE
    assert stored(directory, subscription) == b"metrics"


def test_the_last_push_of_a_client_replaces_the_one_before(cluster, directory, subscribe, push):
    subscription = subscribe()
    push(subscription, b"first")
    cluster.now_ms += subscription.push_interval_ms
    assert push(subscription, b"second") == ErrorCode.NONE
    assert stored(directory, subscription) == b"second"


def test_only_the_latest_files_are_kept(directory, subscribe, push, monkeypatch):
    monkeypatch.setattr(telemetry_files, "MAX_FILES", 2)
    for _ in range(4):
        push(subscribe())
    assert len(list(directory.iterdir())) == 2


def test_an_empty_push_is_taken_and_not_stored(directory, subscribe, push):
    assert push(subscribe(), b"") == ErrorCode.NONE
    assert not directory.exists()


def test_a_push_before_the_interval_is_over_is_throttled(cluster, subscribe, push):
    subscription = subscribe()
    assert push(subscription) == ErrorCode.NONE
    assert push(subscription) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster.now_ms += subscription.push_interval_ms
    assert push(subscription) == ErrorCode.NONE


def test_the_last_push_of_a_client_may_come_early_and_nothing_after_it(subscribe, push):
    subscription = subscribe()
    push(subscription)
    assert push(subscription, terminating=True) == ErrorCode.NONE
    assert push(subscription) == ErrorCode.INVALID_REQUEST
    assert subscribe(subscription.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_after_a_refused_push_a_client_may_ask_again_at_once(cluster, subscribe, push):
    subscription = subscribe()
    cluster.now_ms += 1
    assert (
        push(subscription, subscription_id=subscription.subscription_id ^ 1)
        == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    )
    assert subscribe(subscription.client_instance_id).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("metrics", "fields", "code"),
    [
        (b"x", {"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (bytes(1001), {}, ErrorCode.TELEMETRY_TOO_LARGE),
        (b"not gzip", {"compression_type": 1}, ErrorCode.INVALID_RECORD),
        (
            gzip.compress(bytes(100_000)),
            {"compression_type": 1},
            ErrorCode.INVALID_RECORD,
        ),
        (b"x", {"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        (b"x", {"client_instance_id": bytes(15) + b"\1"}, ErrorCode.INVALID_REQUEST),
        (b"x", {"client_instance_id": os.urandom(16)}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
    ],
    ids=["codec", "too large", "corrupt", "bomb", "zero id", "reserved id", "unknown id"],
)
def test_a_push_that_is_wrong_is_refused(directory, subscribe, push, metrics, fields, code):
    assert push(subscribe(), metrics, **fields) == code
    assert not directory.exists()


def test_subscriptions_made_before_a_restart_still_count(cluster, subscribe, settings):
    alter(cluster, "s", {"metrics": "a", "interval.ms": "1000"})
    cluster.broker = cluster.start(settings)
    answer = subscribe()
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a"], 1000)
