"""Clients with OpenTelemetry's instrumentations: producer, broker and consumer stand in one trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from compat.harness import jars, java
from compat.harness.kafka import LOG4J2
from compat.harness.tools import TOOLS
from tests.support.http_client import HttpClient
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.support.server_process import ServerProcess, eventually

TOPIC = "orders"
Client = Callable[[str, OtlpReceiver], None]


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
def server(receiver: OtlpReceiver) -> Iterator[ServerProcess]:
    settings = {
        "kbroker.trace.sampling": "parent",
        "kbroker.trace.exporters": "otlp",
        "kbroker.otlp.endpoint": receiver.url,
    }
    flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
    with ServerProcess("--in-memory", "--http-port", "0", *flags) as process:
        yield process


def python_client(library: str, action: str) -> Client:
    def run(bootstrap: str, receiver: OtlpReceiver) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "compat.clients.otel.python_client", library, action]
        command += [bootstrap, TOPIC, receiver.url]
        subprocess.run(command, check=True, timeout=120, stderr=subprocess.PIPE)

    return run


def java_client(action: str) -> Client:
    """Kafka's console clients with OpenTelemetry's agent."""
    (agent,) = jars.paths("opentelemetry")
    tool = {"produce": "kafka-console-producer", "consume": "kafka-console-consumer"}[action]

    def run(bootstrap: str, receiver: OtlpReceiver) -> None:
        arguments = ["--bootstrap-server", bootstrap, "--topic", TOPIC]
        if action == "produce":
            arguments += ["--sync"]  # else the agent stops before the producer does
        else:
            arguments += ["--from-beginning", "--max-messages", "1", "--timeout-ms", "60000"]
        command = java.command(
            TOOLS[tool],
            arguments,
            classpath=jars.classpath("kafka"),
            heap_mb=256,
            options=[*java.QUICK_START, f"-javaagent:{agent}"],
            properties={
                "otel.service.name": f"java-{action}",
                "otel.exporter.otlp.endpoint": receiver.url,
                "otel.metrics.exporter": "none",
                "otel.logs.exporter": "none",
                "otel.bsp.schedule.delay": "100",
                "log4j2.configurationFile": str(LOG4J2),
            },
        )
        subprocess.run(command, input=b"value\n", check=True, timeout=180, capture_output=True)

    return run


CLIENTS = [
    pytest.param(lambda action: python_client("kafka-python", action), id="kafka-python"),
    pytest.param(lambda action: python_client("confluent", action), id="confluent"),
    pytest.param(java_client, id="java", marks=pytest.mark.java),
]


def by_service(spans: list[ReceivedSpan]) -> dict[str, list[ReceivedSpan]]:
    found: dict[str, list[ReceivedSpan]] = {}
    for span in spans:
        found.setdefault(span.service.rpartition("-")[2], []).append(span)
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_the_brokers_spans_stand_between_those_of_producer_and_consumer(
    client: Callable[[str], Client], server: ServerProcess, receiver: OtlpReceiver
) -> None:
    client("produce")(server.bootstrap, receiver)
    eventually(lambda: any(span.service == "kbroker" for span in receiver.spans))
    client("consume")(server.bootstrap, receiver)
    trace_id = next(span.trace_id for span in receiver.spans if span.service == "kbroker")
    eventually(lambda: {"produce", "kbroker"} <= by_service(receiver.of_trace(trace_id)).keys())
    eventually(lambda: any(span.name == f"fetched {TOPIC}" for span in receiver.of_trace(trace_id)))
    spans = by_service(receiver.of_trace(trace_id))
    (sent,) = spans["produce"]

    def consumed() -> list[ReceivedSpan]:
        """The consumer's span is the producer's child, or linked to it: instrumentations differ in that."""
        return [span for span in receiver.spans if sent.span_id in (span.parent_id, *span.links)]

    eventually(lambda: any(span.service.endswith("consume") for span in consumed()))
    broker = {span.name.split()[0]: span for span in spans["kbroker"]}
    assert {"received", "stored", "fetched"} <= broker.keys()
    assert broker["received"].parent_id == sent.span_id
    assert broker["stored"].parent_id == broker["fetched"].parent_id == broker["received"].span_id
    assert all(span.trace_id == trace_id for span in consumed() if span.parent_id == sent.span_id)
    end_ns = max(span.end_ns for span in consumed() if span.service.endswith("consume"))
    assert sent.begin_ns <= broker["received"].begin_ns <= broker["fetched"].begin_ns <= end_ns
    with HttpClient(server.url) as http:
        kept = http.get(f"/traces/{trace_id}").json["spans"]
    assert {span["spanId"] for span in kept} == {span.span_id for span in spans["kbroker"]}
