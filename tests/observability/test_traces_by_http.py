"""Traces of a real broker: looked for by HTTP, and still there after it was killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.observability.traces import PARENT, TRACE, traceparent
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

OTHER = "1" * 32


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path / "data"), "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        made = client.post("/topics", {"name": "orders", "configs": {"kbroker.trace.sampling": "parent"}})
        assert made.status == 201
        yield client


def produce(server: ServerProcess, *records: tuple[bytes | None, str]) -> None:
    """Keys and trace ids."""
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
        for key, trace in records:
            producer.send("orders", b"value", key=key, headers=[traceparent(trace)], partition=0)
        producer.flush(20)


def consume(server: ServerProcess, records: int) -> None:
    with closing(KafkaConsumer(bootstrap_servers=server.bootstrap, client_id="reader")) as consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        seen = 0
        while seen < records:
            seen += sum(map(len, consumer.poll(500).values()))


def found(http: HttpClient, query: str) -> list[str]:
    answer = http.get(f"/traces/search?{query}")
    assert answer.status == 200, answer
    return [each["traceId"] for each in answer.json["traces"]]


def events(http: HttpClient, trace: str = TRACE) -> list[str]:
    answer = http.get(f"/traces/{trace}")
    return [span["event"] for span in answer.json["spans"]] if answer.status == 200 else []


def test_a_trace_is_told_whole(server: ServerProcess, http: HttpClient) -> None:
    produce(server, (b"a key", TRACE))
    consume(server, 1)
    eventually(lambda: events(http) == ["received", "stored", "fetched"])
    received, stored, fetched = http.get(f"/api/v1/traces/{TRACE.upper()}").json["spans"]
    assert received["parentSpanId"] == PARENT
    assert stored["parentSpanId"] == fetched["parentSpanId"] == received["spanId"]
    assert fetched["attributes"] == {"client": "reader"}
    assert (received["topic"], received["partition"], received["offset"]) == ("orders", 0, 0)
    assert received["key"] == "a key"
    (summary,) = http.get("/traces").json["traces"]
    assert (summary["traceId"], summary["spans"], summary["status"]) == (TRACE, 3, "ok")
    assert summary["topics"] == ["orders"]
    assert summary["timestamp"] == int(received["startTimeUnixNano"]) // 1_000_000


def test_traces_are_found_by_what_their_spans_are_like(server: ServerProcess, http: HttpClient) -> None:
    produce(server, (b"a", TRACE), ("ü".encode(), OTHER), (b"\xff", OTHER))
    eventually(lambda: len(events(http, OTHER)) == 4)
    (first,) = [span for span in http.get(f"/traces/{TRACE}").json["spans"] if span["event"] == "received"]
    after = int(first["endTimeUnixNano"]) // 1_000_000 + 60_000
    assert found(http, "topic=orders") == [OTHER, TRACE]
    assert found(http, "topic=orders&limit=1") == [OTHER]
    assert found(http, "partition=0&offset=0") == [TRACE]
    assert found(http, "key=a") == [TRACE]
    assert found(http, "key=%C3%BC") == [OTHER]
    assert found(http, f"from={after}") == []
    assert found(http, f"to={after}&event=stored&status=ok") == [OTHER, TRACE]
    for nothing in (
        "topic=other",
        "partition=1",
        "offset=3",
        "key=b",
        "to=1000",
        "status=error",
        "event=fetched",
    ):
        assert found(http, nothing) == []
    assert http.get(f"/traces/{OTHER}").json["spans"][-1]["keyBase64"] == "/w=="
    for wrong in ("status=good", "event=eaten", "partition=-1", "offset=x", "from=today", "limit=0"):
        assert http.get(f"/traces/search?{wrong}").status == 400
    assert http.get("/traces/xyz").status == 400
    assert http.get(f"/traces/{'2' * 32}").status == 404


def test_what_happened_before_a_kill_is_known_after_it(server: ServerProcess, http: HttpClient) -> None:
    produce(server, (b"a", TRACE))
    eventually(lambda: events(http) == ["received", "stored"])
    server.kill()
    server.start()
    with HttpClient(server.url) as again:
        assert events(again) == ["received", "stored"]
        consume(server, 1)
        eventually(lambda: events(again) == ["received", "stored", "fetched"])


def test_other_doors_leave_spans_as_well(server: ServerProcess, http: HttpClient) -> None:
    header = {"key": "traceparent", "value": traceparent()[1].decode()}
    published = http.post("/topics/orders/messages", {"value": 1, "headers": [header]})
    assert published.status < 300, published
    assert http.get("/topics/orders/partitions/0/fetch?offset=0").status == 200
    assert events(http) == ["received", "stored", "fetched"]


def test_a_broker_that_never_traced_knows_no_trace(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess("--data", str(data), "--http-port", "0") as server, HttpClient(server.url) as http:
        assert http.get("/traces").json == {"traces": [], "dropped": 0}
        assert http.get(f"/traces/{TRACE}").status == 404
    assert not (data / "traces.ring").exists()
