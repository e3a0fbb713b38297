from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest

from .telemetry_client import TelemetryClient, alter_subscription

TELEMETRY_KEYS = {71, 72}


@pytest.fixture
def settings():
    return {"node.id": "1", "telemetry.max.bytes": "1000"}


@pytest.fixture
def client(cluster):
    return TelemetryClient(cluster)


class TestOff:
    @pytest.fixture
    def settings(self):
        return {"node.id": "1", "kbroker.telemetry.enable": "false"}

    def test_telemetry_is_not_offered(self, client):
        assert not TELEMETRY_KEYS & client.offered_apis()

    def test_whoever_asks_all_the_same_is_refused(self, cluster, client):
        assert client.subscribe().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert cluster.send(PushTelemetryRequest(), 0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_telemetry_is_offered(client):
    assert client.offered_apis() >= TELEMETRY_KEYS


def test_a_client_gets_an_id_and_without_subscriptions_pushes_nothing(client):
    first, second = client.subscribe(), client.subscribe()
    assert first.error_code == ErrorCode.NONE
    assert first.client_instance_id not in (bytes(16), second.client_instance_id)
    assert (first.push_interval_ms, first.telemetry_max_bytes, first.requested_metrics) == (300_000, 1000, [])
    assert first.accepted_compression_types == [4, 3, 1, 2]


def test_a_client_gets_the_metrics_of_all_subscriptions_it_matches(cluster, client):
    client.offered_apis()  # says which software the client is
    alter_subscription(
        cluster,
        "java",
        {"metrics": "b.,a.", "interval.ms": "5000", "match": "client_software_name=apache-.*"},
    )
    alter_subscription(
        cluster, "here", {"metrics": "a.,c", "match": "client_source_address=127.*,client_source_port=\\d+"}
    )
    alter_subscription(
        cluster, "other", {"metrics": "x", "interval.ms": "100", "match": "client_id=somebody"}
    )
    alter_subscription(cluster, "prefix", {"metrics": "x", "interval.ms": "100", "match": "client_id=te"})
    answer = client.subscribe()
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a.", "b.", "c"], 5000)
    alter_subscription(cluster, "all", {"metrics": "*,b."})
    assert client.subscribe().requested_metrics == ["*"]
    alter_subscription(cluster, "all", {"metrics": None})
    alter_subscription(cluster, "java", {"metrics": None, "interval.ms": None, "match": None})
    assert client.subscribe().requested_metrics == ["a.", "c"]


def test_a_change_of_subscriptions_reaches_a_client_at_once_under_a_new_id(cluster, client):
    before = client.subscribe()
    assert client.subscribe(before.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    alter_subscription(cluster, "s", {"metrics": "*"})
    assert client.push(before) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    after = client.subscribe(before.client_instance_id)
    assert after.client_instance_id == before.client_instance_id
    assert after.subscription_id != before.subscription_id
    cluster.now_ms += after.push_interval_ms
    assert client.push(after) == ErrorCode.NONE


def test_subscriptions_made_before_a_restart_still_count(cluster, client, settings):
    alter_subscription(cluster, "s", {"metrics": "a", "interval.ms": "1000"})
    cluster.broker = cluster.start(settings)
    answer = client.subscribe()
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a"], 1000)


def test_what_is_known_of_a_client_goes_with_its_connection(cluster, client):
    first = client.subscribe()
    assert client.subscribe(first.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster.session().closed()
    again = client.subscribe(first.client_instance_id)
    assert (again.error_code, again.client_instance_id) == (ErrorCode.NONE, first.client_instance_id)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_software_name=unknown,client_software_version=unknown", True),
        ("client_instance_id=a2tra2tra2tra2tra2traw", True),
        ("client_instance_id=a2", False),
        ("client_id=tes", False),
    ],
)
def test_who_is_meant_may_be_said_by_what_kafka_knows_of_a_client(cluster, client, match, matches):
    alter_subscription(cluster, "s", {"metrics": "a.", "match": match})
    assert client.subscribe(b"k" * 16).requested_metrics == (["a."] if matches else [])
