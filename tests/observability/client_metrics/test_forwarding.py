"""What clients pushed, handed on by OTLP and read by OpenTelemetry's own protobuf classes."""

from __future__ import annotations

import threading

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics

from kbroker.observability.client_metrics import forwarding
from kbroker.observability.client_metrics.forwarding import Forwarder, with_resource
from kbroker.observability.otlp import METRICS, OtlpSender
from kbroker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest
from kbroker.telemetry.clients import Push
from tests.observability.client_metrics.pushed import counter, gauge, metrics_data
from tests.support.http_client import HttpClient
from tests.support.metrics import scrape
from tests.support.otlp_receiver import OtlpReceiver
from tests.support.server_process import ServerProcess, eventually

DATA = metrics_data(counter("a.total", 2**40, topic="ü"), gauge("b", -1.5), client_rack="r1")


def read(body: bytes) -> ResourceMetrics:
    (data,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    return data


def labels(data: ResourceMetrics) -> dict[str, str]:
    return {each.key: each.value.string_value for each in data.resource.attributes}


def test_metrics_are_what_they_were_and_their_resource_knows_more() -> None:
    before = ExportMetricsServiceRequest.FromString(DATA).resource_metrics[0]
    after = read(with_resource(DATA, {"client_id": "c", "client_rack": "another"}))
    assert labels(after) == {"client_rack": "r1", "client_id": "c"}
    assert after.scope_metrics == before.scope_metrics


def test_metrics_without_a_resource_get_one() -> None:
    data = ResourceMetrics(schema_url="https://schema")
    body = ExportMetricsServiceRequest(resource_metrics=[data]).SerializeToString()
    after = read(with_resource(body, {"client_id": "c"}))
    assert (labels(after), after.schema_url) == ({"client_id": "c"}, "https://schema")


def test_what_waits_is_bounded_in_bytes_and_what_is_dropped_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "_MOST_WAITING_BYTES", 2 * len(DATA))
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        go_on.wait(20)
        return DATA

    with OtlpReceiver() as receiver:
        sender = OtlpSender(receiver.url)
        forwarder = Forwarder(sender, "1")
        sender.send(METRICS, 0, slow)
        assert begun.wait(20)
        for number in range(4):
            forwarder.forward(Push(b"%d" % number * 16, {}, DATA, 1000, False, 0))
        assert forwarder.dropped == 2
        go_on.set()
        eventually(lambda: forwarder.forwarded == 2)
        forwarder.forward(Push(b"4" * 16, {}, DATA, 1000, False, 0))
        eventually(lambda: forwarder.forwarded == 3)
        sender.close()
        forwarder.forward(Push(b"5" * 16, {}, DATA, 1000, False, 0))
        assert (forwarder.forwarded, forwarder.dropped, forwarder._waiting_bytes) == (3, 3, 0)


def test_a_broker_hands_on_what_clients_push() -> None:
    with OtlpReceiver() as receiver:
        settings = {
            "kbroker.telemetry.exporters": "otlp",
            "kbroker.otlp.endpoint": receiver.url,
            "kbroker.otlp.headers": "tenant=one",
            "node.id": "7",
        }
        flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
        with ServerProcess("--in-memory", "--http-port", "0", *flags) as server:
            with server.client() as client, HttpClient(server.url) as http:
                asked = client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), 0)
                request = PushTelemetryRequest(
                    asked.client_instance_id, asked.subscription_id, False, 0, DATA
                )
                assert client.ask(request, 0).error_code == 0
                eventually(lambda: scrape(http).of("kbroker_telemetry_forwarded_pushes_total") == 1)
                request.terminating = True
                assert client.ask(request, 0).error_code == 0
            server.stop()  # what waits is handed on
        assert [each.path for each in receiver.requests] == ["/v1/metrics"] * 2
        assert receiver.requests[0].headers["tenant"] == "one"
        data = read(receiver.requests[1].body)
    found = labels(data)
    assert found["service.instance.id"] == found["client_instance_id"]
    assert (found["service.name"], found["client_id"], found["client_rack"]) == ("raw", "raw", "r1")
    assert (found["client_source_address"], found["broker_id"]) == ("127.0.0.1", "7")
    assert [metric.name for metric in data.scope_metrics[0].metrics] == ["a.total", "b"]
