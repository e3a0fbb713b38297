"""Spans sent to an OTLP receiver, and written as JSON lines."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from kbroker.observability import otlp
from kbroker.observability.otlp import METRICS, PROTOBUF, TRACES, OtlpSender, parsed_headers
from kbroker.observability.traces.otlp_spans import encoded
from kbroker.observability.traces.spans import Span
from tests.observability.traces import PARENT, TRACE, traceparent
from tests.support.http_client import HttpClient
from tests.support.otlp_receiver import OtlpReceiver, spans_in
from tests.support.server_process import ServerProcess, eventually

SPAN = Span(
    bytes.fromhex(TRACE), b"12345678", bytes.fromhex(PARENT), bytes(16), "bestellungen-ü", 3, 2**40,
    "rejected", "error",
    1_700_000_000_123_456_789, 1_700_000_000_123_456_790, "kö".encode(),
    {"group": "g", "deliveryCount": 300, "reason": "reject"},
)  # fmt: skip


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_PAUSES_SECONDS", (0.01, 0.01))


def test_opentelemetry_reads_spans_as_they_are_meant() -> None:
    root = SPAN._replace(
        parent_id=bytes(8), event="received", status="ok", key=None, attributes={"bytes": -1}
    )
    read, read_root = spans_in(encoded([SPAN, root], {"service.name": "kbroker", "number": 7}))
    assert read == (
        "kbroker", "rejected bestellungen-ü", TRACE, b"12345678".hex(), PARENT, SPAN.begin_ns, SPAN.end_ns,
        {
            "messaging.system": "kafka",
            "messaging.operation.name": "rejected",
            "messaging.destination.name": "bestellungen-ü",
            "messaging.destination.partition.id": "3",
            "messaging.kafka.offset": 2**40,
            "messaging.kafka.message.key": "kö",
            "messaging.consumer.group.name": "g",
            "kbroker.delivery.count": 300,
            "kbroker.reason": "reject",
        },
        OtlpSpan.SPAN_KIND_INTERNAL, Status.STATUS_CODE_ERROR,
        {"service.name": "kbroker", "number": 7}, "kbroker.traces", (),
    )  # fmt: skip
    assert (read_root.parent_id, read_root.kind) == ("", OtlpSpan.SPAN_KIND_SERVER)
    assert read_root.status == Status.STATUS_CODE_UNSET
    assert read_root.attributes["messaging.message.body.size"] == -1


def test_what_is_sent_comes_in_its_order_with_the_headers() -> None:
    with OtlpReceiver() as receiver:
        sender = OtlpSender(
            receiver.url + "/base/", parsed_headers("Authorization=Bearer x=y, tenant = one ,")
        )
        for number in range(5):
            sender.send(TRACES if number % 2 else METRICS, 3, lambda number=number: b"%d" % number)
        sender.close()
        assert [each.body for each in receiver.requests] == [b"0", b"1", b"2", b"3", b"4"]
        assert [each.path for each in receiver.requests][:2] == ["/base/v1/metrics", "/base/v1/traces"]
        sent = receiver.requests[0].headers
        assert (sent["authorization"], sent["tenant"]) == ("Bearer x=y", "one")
        assert sent["content-type"] == PROTOBUF
        assert (sender.sent.total(), sender.dropped.total()) == (15, 0)


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_is_busy_is_asked_again(status: int) -> None:
    with OtlpReceiver(lambda number: status if number < 2 else 200) as receiver:
        sender = OtlpSender(receiver.url)
        sender.send(TRACES, 1, lambda: b"x")
        eventually(lambda: sender.sent.total() == 1)
        sender.close()
        assert len(receiver.requests) == 3


def test_what_is_refused_is_dropped_and_what_follows_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    with (
        OtlpReceiver(lambda number: 400 if number == 0 else 200) as receiver,
        caplog.at_level(logging.WARNING),
    ):
        sender = OtlpSender(receiver.url)
        sender.send(TRACES, 5, lambda: b"bad")
        sender.send(TRACES, 7, lambda: b"good")
        eventually(lambda: sender.sent.total() == 7)
        sender.close()
        assert sender.dropped.total() == 5
    assert "status 400" in caplog.text


def test_a_receiver_that_is_not_there_costs_no_more_than_what_waits() -> None:
    with OtlpReceiver() as receiver:
        gone = receiver.url
    sender = OtlpSender(gone)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        go_on.wait(20)
        return b"x"

    sender.send(TRACES, 1, slow)
    assert begun.wait(20)
    for _ in range(100):
        sender.send(TRACES, 1, lambda: b"x")
    assert sender.dropped.total() == 100 - 64
    go_on.set()
    eventually(lambda: sender.dropped.total() == 101)
    sender.close()
    sender.send(TRACES, 1, lambda: b"x")
    assert (sender.sent.total(), sender.dropped.total()) == (0, 102)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "ftp://x", "http://", ""])
def test_what_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        OtlpSender(endpoint)


def test_a_broker_exports_to_all_that_it_is_told_to(tmp_path: Path) -> None:
    lines = tmp_path / "spans.jsonl"
    settings = {
        "kbroker.trace.sampling": "parent",
        "kbroker.trace.exporters": "otlp,file,stdout",
        "kbroker.trace.file": str(lines),
        "kbroker.trace.file.max.bytes": "4096",
        "kbroker.trace.file.backups": "2",
    }
    with OtlpReceiver() as receiver:
        settings["kbroker.otlp.endpoint"] = receiver.url
        flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
        with ServerProcess("--in-memory", "--http-port", "0", *flags) as server:
            with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
                for _ in range(20):
                    producer.send("orders", b"v", headers=[traceparent()])
                producer.flush(20)
            eventually(lambda: len(receiver.of_trace(TRACE)) == 40)
            with HttpClient(server.url) as http:
                kept = http.get(f"/traces/{TRACE}").json["spans"]
            with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
                producer.send("orders", b"v", headers=[traceparent("2" * 32)])
                producer.flush(20)
            server.stop()  # what waits is handed on
        assert [span.name for span in receiver.of_trace("2" * 32)] == ["received orders", "stored orders"]
        assert {span.service for span in receiver.spans} == {"kbroker"}
        assert {span.span_id for span in receiver.of_trace(TRACE)} == {span["spanId"] for span in kept}
    files = sorted(tmp_path.glob("spans.jsonl*"))
    assert [file.name for file in files] == ["spans.jsonl", "spans.jsonl.1", "spans.jsonl.2"]
    assert all(file.stat().st_size <= 4096 for file in files)
    written = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [span["traceId"] for span in written if span["traceId"] == "2" * 32] == ["2" * 32] * 2


def test_spans_on_standard_output_are_lines_of_json() -> None:
    flags = ("--set", "kbroker.trace.sampling=1", "--set", "kbroker.trace.exporters=stdout")
    with ServerProcess("--in-memory", *flags) as server:
        with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
            producer.send("orders", b"v").get(20)
        assert server._process is not None
        assert server._process.stdout is not None
        while not (line := server._process.stdout.readline()).startswith("{"):
            assert line
        assert json.loads(line)["event"] == "received"
