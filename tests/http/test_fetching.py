"""Records fetched by HTTP, as numbers, times and writers have it."""

from __future__ import annotations

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from kafka import KafkaProducer

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

_numbers = count()


@pytest.fixture
def topic(http: HttpClient) -> str:
    name = f"fetch-{next(_numbers)}"
    assert http.post("/topics", {"name": name}).status == 201
    return name


def filled(http: HttpClient, topic: str) -> str:
    """Three records, and the path to fetch them."""
    given = [
        {"key": "a", "value": {"n": 1}, "timestamp": 1_700_000_000_000},
        {"valueText": "two", "timestamp": 1_700_000_001_000, "headers": {"h": "v"}},
        {"valueBase64": "/w==", "timestamp": 1_700_000_002_000},
    ]
    assert http.post(f"/topics/{topic}/messages", given).status == 200
    return f"/topics/{topic}/partitions/0/fetch"


def test_records_come_with_their_place_and_where_to_go_on(http: HttpClient, topic: str) -> None:
    answer = http.get(filled(http, topic))
    assert answer.status == 200
    assert (answer.json["nextOffset"], answer.json["highWatermark"], answer.json["logStartOffset"]) == (
        3,
        3,
        0,
    )
    first, second, third = answer.json["records"]
    assert first == {
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "key": "a",
        "value": {"n": 1},
        "headers": [],
    }
    assert (second["valueText"], second["headers"]) == ("two", [{"key": "h", "value": "v"}])
    assert third["valueBase64"] == "/w=="


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("offset=1", [1, 2]),
        ("offset=earliest&maxRecords=1", [0]),
        ("offset=latest", []),
        ("offset=3", []),
        ("timestamp=1700000000500", [1, 2]),
        ("timestamp=2023-11-14T22:13:22Z", [2]),
        ("timestamp=2023-11-14T23:13:22%2B01:00", [2]),
        ("timestamp=4000000000000", []),
        ("maxBytes=1", [0]),
    ],
)
def test_a_fetch_begins_where_it_is_told(
    http: HttpClient, topic: str, query: str, offsets: list[int]
) -> None:
    answer = http.get(f"{filled(http, topic)}?{query}")
    assert [record["offset"] for record in answer.json["records"]] == offsets


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("offset=-1", 400),
        ("offset=soon", 400),
        ("offset=1&timestamp=5", 400),
        ("timestamp=yesterday", 400),
        ("maxBytes=0", 400),
        ("maxWaitMs=100000000", 400),
        ("isolation=snapshot", 400),
        ("value=yaml", 400),
        ("minOffset=x", 400),
        ("offset=99", 416),
    ],
)
def test_what_cannot_be_fetched_is_told(http: HttpClient, topic: str, query: str, status: int) -> None:
    answer = http.get(f"{filled(http, topic)}?{query}")
    assert (answer.status, answer.media_type) == (status, "application/problem+json")
    if status == 416:
        assert (answer.json["logStartOffset"], answer.json["nextOffset"]) == (0, 3)


def test_other_forms_by_accept(http: HttpClient, topic: str) -> None:
    path = filled(http, topic)
    lines = http.get(path, Accept="application/x-ndjson")
    assert lines.media_type == "application/x-ndjson"
    assert [json.loads(line)["offset"] for line in lines.body.splitlines()] == [0, 1, 2]
    assert lines.headers["X-Next-Offset"] == "3"
    binary = http.get(path, Accept="application/vnd.kbroker.length-prefixed")
    parts = [b'{"n":1}', b"two", b"\xff"]
    assert binary.body == b"".join(struct.pack(">i", len(part)) + part for part in parts)
    raw = http.get(f"{path}?offset=2&raw=1")
    assert (raw.body, raw.media_type, raw.headers["X-Offset"]) == (b"\xff", "application/octet-stream", "2")
    assert http.get(f"{path}?offset=3", Accept="application/octet-stream").status == 204
    assert http.get(path, Accept="image/png").status == 406
    assert http.get(f"{path}?value=base64&key=base64").json["records"][0]["keyBase64"] == "YQ=="


def test_a_long_poll_ends_with_the_first_record(server: ServerProcess, http: HttpClient, topic: str) -> None:
    path = f"/topics/{topic}/partitions/0/fetch?maxWaitMs=60000"
    with ThreadPoolExecutor(1) as pool, HttpClient(server.url, timeout=50) as waiting:
        polled = pool.submit(waiting.get, path)
        producer = KafkaProducer(bootstrap_servers=server.bootstrap)
        producer.send(topic, b"now").get(30)
        producer.close()
        assert polled.result().json["records"][0]["valueText"] == "now"


def test_aborted_records_are_left_out_if_only_committed_ones_are_wanted(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    producer = KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=f"tx-{topic}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"aborted").get(30)
    path = f"/topics/{topic}/partitions/0/fetch"
    assert http.get(f"{path}?isolation=read_committed").json["nextOffset"] == 0
    assert len(http.get(path).json["records"]) == 1
    producer.abort_transaction()
    producer.close()
    committed = http.get(f"{path}?isolation=read_committed").json
    assert (committed["records"], committed["nextOffset"]) == ([], 2)


def test_a_reader_waits_for_what_its_writer_has_written(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    path = filled(http, topic)
    assert len(http.get(f"{path}?minOffset=2").json["records"]) == 3
    late = http.get(f"{path}?minOffset=3")
    assert (late.status, late.json["nextOffset"]) == (504, 3)
    late = http.get(f"{path}?maxWaitMs=100", X_Read_Min_Offset="4")
    assert (late.status, late.json["nextOffset"]) == (504, 3)
    with ThreadPoolExecutor(1) as pool, HttpClient(server.url, timeout=50) as waiting:
        polled = pool.submit(waiting.get, f"{path}?minOffset=4&offset=4&maxWaitMs=60000")
        for text in ("three", "four"):
            assert http.ask("POST", f"/topics/{topic}/partitions/0", text).status == 200
        assert [each["valueText"] for each in polled.result().json["records"]] == ["four"]


def test_what_is_published_can_be_published_again_as_it_was_fetched(http: HttpClient, topic: str) -> None:
    path = filled(http, topic)
    records = http.get(path).json["records"]
    again = [{name: record[name] for name in record if name != "offset"} for record in records]
    assert http.post(f"/topics/{topic}/messages", again).status == 200
    fetched = http.get(f"{path}?offset=3").json["records"]
    assert [{**record, "offset": 0} for record in fetched] == [{**record, "offset": 0} for record in records]
