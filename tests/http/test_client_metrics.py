"""Metrics that clients push, as GET /metrics tells them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kbroker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest
from tests.observability.client_metrics.pushed import counter, gauge, metrics_data
from tests.support.http_client import HttpClient
from tests.support.metrics import Samples, scrape
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess

CLIENT_METRICS = 16


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


def alter(client: RawClient, value: str | None) -> None:
    """Subscribe to all metrics, or to none any more."""
    changes = [
        AlterableConfig("metrics", 0 if value else 1, value),
        AlterableConfig("interval.ms", 0 if value else 1, "100" if value else None),
    ]
    resource = AlterConfigsResource(CLIENT_METRICS, "all", changes)
    (answer,) = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == 0


def push(client: RawClient, data: bytes, asked: Any = None) -> Any:
    asked = asked or client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), 0)
    assert asked.error_code == 0
    request = PushTelemetryRequest(asked.client_instance_id, asked.subscription_id, False, 0, data)
    assert client.ask(request, 0).error_code == 0
    return asked


@pytest.mark.parametrize("openmetrics", [False, True])
def test_what_clients_push_is_told(server: ServerProcess, http: HttpClient, openmetrics: bool) -> None:
    before = scrape(http, openmetrics=openmetrics)
    assert before.of("kbroker_telemetry_clients") == 0
    assert not before.labels("kbroker_client_info")
    with server.client() as client:
        alter(client, "*")
        for number in (1, 2):
            data = metrics_data(
                counter("org.apache.kafka.producer.record.send.total", number, topic='with "quotes"\n'),
                gauge("org.apache.kafka.producer.request.latency.avg", float("nan")),
                gauge("org.apache.kafka.producer.request.created", float("inf")),
                gauge("info", 7),  # the name of what is told of clients
                client_rack=f"rack {number}",
            )
            push(client, data)
    found = scrape(http, openmetrics=openmetrics)
    sent = "kbroker_client_producer_record_send_total"
    assert found.families[sent.removesuffix("_total")] == "counter"
    assert found.sum(sent, client_id="raw", topic='with "quotes"\n') == 3
    assert len(found.labels("kbroker_client_producer_request_latency_avg")) == 2
    assert found.sum("kbroker_client_producer_request") == float("inf")
    racks = {each["client_rack"]: each["client_instance_id"] for each in found.labels("kbroker_client_info")}
    assert racks.keys() == {"rack 1", "rack 2"}
    assert set(racks.values()) == {each["client_instance_id"] for each in found.labels(sent)}
    assert found.of("kbroker_telemetry_clients") == found.of("kbroker_telemetry_pushes_total") == 2
    assert found.of("kbroker_telemetry_series") == 6
    assert found.of("kbroker_telemetry_left_out_series_total") == 2


def test_who_is_asked_for_nothing_any_more_is_told_of_no_more(
    server: ServerProcess, http: HttpClient
) -> None:
    with server.client() as client:
        alter(client, "*")
        asked = push(client, metrics_data(gauge("a", 1)))
        assert scrape(http).labels("kbroker_client_a")
        alter(client, None)
        client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=asked.client_instance_id), 0)
    found = scrape(http)
    assert not found.labels("kbroker_client_a")
    assert found.of("kbroker_telemetry_clients") == 0


def test_series_of_one_metric_are_bounded() -> None:
    with (
        ServerProcess("--in-memory", "--http-port", "0", "--set", "kbroker.metrics.max.series=3") as server,
        HttpClient(server.url) as http,
        server.client() as client,
    ):
        data = metrics_data(*(gauge("a", number, each=number) for number in range(10)))
        alter(client, "*")
        push(client, data)
        found: Samples = scrape(http)
        assert len(found.labels("kbroker_client_a")) == 3
        assert found.of("kbroker_metrics_left_out", metric="kbroker_client_a") == 7
