"""Client metrics (KIP-714): Java clients push what kafka-client-metrics asks for, /metrics tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from compat.clients.java.conftest import Run
from compat.harness.broker import KBrokerProcess
from compat.harness.tools import KafkaTools
from tests.support import raw_topics
from tests.support.http_client import HttpClient
from tests.support.metrics import scrape
from tests.support.otlp_receiver import OtlpReceiver
from tests.support.server_process import ServerProcess, eventually

Produce = Callable[..., None]
READ = "kbroker_client_consumer_fetch_manager_records_consumed_total"
SENT = "kbroker_client_producer_record_send_total"


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


def subscribe(tools: KafkaTools, bootstrap: str, *options: str) -> None:
    done = tools.run("kafka-client-metrics", "--bootstrap-server", bootstrap, "--alter", *options)
    assert done.exit_code == 0, done.output


def produce(tools: KafkaTools, bootstrap: str, client_id: str, records: int = 500) -> None:
    sent = tools.run(
        "kafka-producer-perf-test",
        *("--topic", "metered", "--num-records", str(records), "--record-size", "10", "--throughput", "500"),
        *("--command-property", f"bootstrap.servers={bootstrap}", f"client.id={client_id}"),
    )
    assert sent.exit_code == 0, sent.output


def read_records(tools: KafkaTools, bootstrap: str, records: int) -> None:
    tools.run(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", "metered", "--num-records", str(records)),
        *("--timeout", "60000", "--group", "readers", "--command-property", "client.id=reader"),
    )


def test_producers_and_consumers_are_told_of(
    kafka_tools: KafkaTools, server: ServerProcess, http: HttpClient
) -> None:
    subscribe(kafka_tools, server.bootstrap, "--name", "all", "--metrics", "*", "--interval", "200")
    produce(kafka_tools, server.bootstrap, "sender")
    reading = Thread(target=lambda: read_records(kafka_tools, server.bootstrap, 501))
    reading.start()
    eventually(lambda: scrape(http).sum(READ, client_id="reader", topic="metered") == 500)
    with server.client() as client:
        raw_topics.produce(client, "metered", 0, b"the last")
    reading.join()
    for openmetrics in (False, True):
        found = scrape(http, openmetrics=openmetrics)
        assert found.families[SENT.removesuffix("_total")] == "counter"
        assert 0 < found.sum(SENT, client_id="sender") <= 500  # its last push may be of a moment before
        assert (
            found.sum("kbroker_client_consumer_fetch_manager_records_consumed_total", client_id="reader") > 0
        )
        infos = {each["client_id"]: each for each in found.labels("kbroker_client_info")}
        assert infos["sender"]["client_software_name"] == "apache-kafka-java"
        assert infos["reader"]["group_id"] == "readers"
        assert found.of("kbroker_telemetry_left_out_series_total") == 0
    assert "Traceback" not in server.log()


def test_who_is_meant_by_no_subscription_pushes_nothing(
    kafka_tools: KafkaTools, server: ServerProcess, http: HttpClient
) -> None:
    wanted = ("--name", "one", "--metrics", "org.apache.kafka.producer.record.", "--interval", "200")
    subscribe(kafka_tools, server.bootstrap, *wanted, "--match", "client_id=metered")
    produce(kafka_tools, server.bootstrap, "metered")
    produce(kafka_tools, server.bootstrap, "another")
    found = scrape(http)
    assert {each["client_id"] for each in found.labels("kbroker_client_info")} == {"metered"}
    names = {name for (name, _) in found.found if name.startswith("kbroker_client_") and "info" not in name}
    assert SENT in names
    assert all(name.startswith("kbroker_client_producer_record_") for name in names)


def test_the_last_push_is_stored_and_forwarded(kafka_tools: KafkaTools, tmp_path: Path) -> None:
    with OtlpReceiver() as receiver:
        settings = {
            "kbroker.telemetry.directory": str(tmp_path),
            "kbroker.telemetry.exporters": "otlp",
            "kbroker.otlp.endpoint": receiver.url,
        }
        with KBrokerProcess(settings) as server:
            wanted = ("--name", "producers", "--metrics", "org.apache.kafka.producer.", "--interval", "200")
            match = ("--match", "client_software_name=apache-kafka-java,client_id=telemetry")
            subscribe(kafka_tools, server.bootstrap, *wanted, *match)
            produce(kafka_tools, server.bootstrap, "telemetry")
            eventually(lambda: len(list(tmp_path.glob("*.otlp"))) == 1)
            (pushed,) = tmp_path.glob("*.otlp")
            metrics = pushed.read_bytes()
            assert b"org.apache.kafka.producer.record.send.total" in metrics
            assert b"org.apache.kafka.consumer" not in metrics
            assert server.stop() == 0
            assert "Traceback" not in server.output()
        pushes = ExportMetricsServiceRequest.FromString(receiver.requests[-1].body).resource_metrics
    for each in pushes:
        labels = {attribute.key: attribute.value.string_value for attribute in each.resource.attributes}
        assert (labels["client_id"], labels["service.name"]) == ("telemetry", "telemetry")
        assert labels["client_instance_id"] == labels["service.instance.id"] == pushed.stem
    sent = {metric.name: metric.sum for each in pushes for metric in each.scope_metrics[0].metrics}
    assert 0 < sent["org.apache.kafka.producer.record.send.total"].data_points[0].as_double <= 500


def test_subscriptions_are_listed_described_and_deleted(run: Run, unique: Callable[[str], str]) -> None:
    name = unique("subscription")
    tool = "kafka-client-metrics"
    assert name not in run(tool, "--list").output
    run(
        tool,
        "--alter",
        "--name",
        name,
        "--metrics",
        "a.,b.",
        "--interval",
        "1000",
        "--match",
        "client_id=x.*",
    )
    eventually(lambda: name in run(tool, "--list").output.split())
    for described in (run(tool, "--describe", "--name", name), run(tool, "--describe")):
        for expected in (name, "metrics=a.,b.", "interval.ms=1000", "match=client_id=x.*"):
            assert expected in described.output
    run(tool, "--alter", "--name", name, "--interval", "")
    eventually(lambda: "interval.ms=1000" not in run(tool, "--describe", "--name", name).output)
    run(tool, "--delete", "--name", name)
    eventually(lambda: name not in run(tool, "--list").output.split())
    generated = run(tool, "--alter", "--generate-name", "--metrics", "c.").output
    assert "Altered client metrics config" in generated
    run(tool, "--delete", "--name", generated.split()[-1].rstrip("."))
    refused = run(tool, "--alter", "--name", name, "--interval", "99", ok=False)
    assert "interval" in refused.output.lower()
