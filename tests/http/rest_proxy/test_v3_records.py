"""Records published by version 3: streams that are answered while they go on, and batches."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess

_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def base(http: HttpClient) -> str:
    (cluster,) = http.get("/v3/clusters").json["data"]
    return f"/v3/clusters/{cluster['cluster_id']}"


@pytest.fixture
def topic(http: HttpClient, base: str) -> Iterator[str]:
    name = f"v3-records-{next(_numbers)}"
    assert http.post(f"{base}/topics", {"topic_name": name, "partitions_count": 2}).status == 201
    yield name
    http.ask("DELETE", f"{base}/topics/{name}")


@pytest.fixture
def path(base: str, topic: str) -> str:
    return f"{base}/topics/{topic}/records"


def stored(server: ServerProcess, topic: str, count: int, partition: int = 0) -> list[Any]:
    with closing(KafkaConsumer(bootstrap_servers=server.bootstrap, auto_offset_reset="earliest")) as reader:
        reader.assign([TopicPartition(topic, partition)])
        found: list[Any] = []
        while len(found) < count:
            for records in reader.poll(20_000).values():
                found += records
        return found


def reports(answer: Answer) -> list[dict[str, Any]]:
    assert (answer.status, answer.media_type) == (200, "application/json"), answer
    return [json.loads(line) for line in answer.body.split(b"\r\n") if line]


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"value": {"type": "STRING", "data": value}, **more}


def test_a_record_of_every_type_is_stored_and_reported(
    server: ServerProcess, http: HttpClient, path: str
) -> None:
    topic = path.split("/")[-2]
    asked = {
        "partition_id": 0,
        "headers": [
            {"name": "h", "value": base64.b64encode(b"\x00v").decode()},
            {"name": "none"},
        ],
        "key": {"type": "BINARY", "data": "Zm9vYmFy"},
        "value": {"type": "JSON", "data": {"foo": [1, None, "é"]}},
        "timestamp": "2021-02-05T19:14:42Z",
    }
    (report,) = reports(http.post(path, asked))
    assert (report["error_code"], report["partition_id"], report["offset"]) == (200, 0, 0)
    assert (report["topic_name"], report["timestamp"]) == (topic, "2021-02-05T19:14:42.000Z")
    assert report["key"] == {"type": "BINARY", "size": 6}
    assert report["value"] == {"type": "JSON", "size": len('{"foo":[1,null,"é"]}'.encode())}
    assert report["cluster_id"] == http.get("/v3/clusters").json["data"][0]["cluster_id"]
    (report,) = reports(http.post(path, {"partition_id": 0, "key": {"type": "STRING", "data": "k"}}))
    assert (report["offset"], "value" in report) == (1, False)
    first, second = stored(server, topic, 2)
    assert (first.key, first.value, first.timestamp) == (
        b"foobar",
        '{"foo":[1,null,"é"]}'.encode(),
        1612552482000,
    )
    assert first.headers == [("h", b"\x00v"), ("none", None)]
    assert (second.key, second.value) == (b"k", None)


def test_records_that_follow_each_other_are_reported_in_order(
    server: ServerProcess, http: HttpClient, path: str
) -> None:
    body = "".join(json.dumps(text(f"{{{number}", partition_id=number % 2)) for number in range(1200))
    found = reports(http.ask("POST", path, body))
    assert [(each["error_code"], each["partition_id"], each["offset"]) for each in found] == [
        (200, number % 2, number // 2) for number in range(1200)
    ]
    values = [record.value for record in stored(server, path.split("/")[-2], 600, 1)]
    assert values == [f"{{{number}".encode() for number in range(1, 1200, 2)]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"value": {"type": "BINARY", "data": "no base64!"}}, 400),
        ({"value": {"type": "BINARY", "data": 1}}, 400),
        ({"value": {"type": "STRING", "data": 1}}, 400),
        ({"value": {"type": "XML", "data": "1"}}, 400),
        ({"value": "text"}, 400),
        ({"value": {"type": "AVRO", "schema": '"string"', "data": "x"}}, 501),
        ({"value": {"type": "JSONSCHEMA", "data": "x"}}, 501),
        ({"key": {"type": "PROTOBUF", "data": "x"}}, 501),
        ({"key": {"schema_id": 1, "data": 1000}}, 501),
        (text("x", partition_id=-1), 40402),
        (text("x", partition_id=2), 40402),
        (text("x", partition_id="A"), 400),
        (text("x", timestamp="yesterday"), 400),
        (text("x", timestamp=1), 400),
        (text("x", headers=[{"value": "eA=="}]), 400),
        (text("x", headers=[{"name": "h", "value": "?"}]), 400),
    ],
)
def test_a_record_that_cannot_be_published_does_not_keep_others(
    http: HttpClient, path: str, record: Any, code: int
) -> None:
    body = json.dumps(text("a")) + json.dumps(record) + json.dumps(text("b"))
    before, failed, after = reports(http.ask("POST", path, body))
    assert (before["error_code"], after["error_code"]) == (200, 200)
    assert failed.keys() == {"error_code", "message"}
    assert failed["error_code"] == code


def test_what_is_no_json_ends_the_stream(http: HttpClient, path: str) -> None:
    for rest in ("[1]", "x", '{"value": {', '"text"'):
        good, last = reports(http.ask("POST", path, json.dumps(text("a")) + rest))
        assert (good["error_code"], last["error_code"]) == (200, 400)
    inner = reports(http.ask("POST", path, '{"value": tru}' + json.dumps(text("a"))))
    assert [each["error_code"] for each in inner] == [400, 200]


def test_an_empty_body_is_refused(http: HttpClient, path: str) -> None:
    for body in (b"", b" \n "):
        answer = http.ask("POST", path, body)
        assert (answer.status, answer.json["error_code"]) == (422, 42206)


def test_an_unknown_topic_fails_every_record(base: str) -> None:
    settings = ("--set", "auto.create.topics.enable=false")
    with (
        ServerProcess("--in-memory", "--http-port", "0", *settings) as server,
        HttpClient(server.url) as http,
    ):
        (cluster,) = http.get("/v3/clusters").json["data"]
        path = f"/v3/clusters/{cluster['cluster_id']}/topics/never/records"
        found = reports(http.ask("POST", path, json.dumps(text("a")) * 2))
        assert [each["error_code"] for each in found] == [40401, 40401]


class Stream:
    """A request whose body goes on."""

    def __init__(self, server: ServerProcess, path: str) -> None:
        parts = urlsplit(server.url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=20)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        self.socket.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n")
        self.received = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def read_until(self, count: int) -> list[dict[str, Any]]:
        """The reports, as soon as there are so many."""
        while True:
            lines = self.received.partition(b"\r\n\r\n")[2].split(b"\r\n")
            found = [json.loads(line) for line in lines if line.startswith(b"{")]
            if len(found) >= count:
                return found
            part = self.socket.recv(65536)
            assert part, self.received
            self.received += part

    def end(self) -> bytes:
        self.socket.sendall(b"0\r\n\r\n")
        while part := self.socket.recv(65536):
            self.received += part
        return self.received


def test_a_stream_is_answered_while_it_goes_on(server: ServerProcess, http: HttpClient, path: str) -> None:
    stream = Stream(server, path)
    with closing(stream.socket):
        for number in range(3):
            stream.send(json.dumps(text(str(number), partition_id=1)).encode())
            last = stream.read_until(number + 1)[-1]
            assert (last["error_code"], last["offset"]) == (200, number)
        half, rest = b'{"value": {"type": "STRING", "da', b'ta": "in \\"} two"}, "partition_id": 1}'
        stream.send(half)
        stream.send(rest)
        assert stream.read_until(4)[-1]["offset"] == 3
        assert stream.end().endswith(b"0\r\n\r\n")
    assert stored(server, path.split("/")[-2], 4, 1)[3].value == b'in "} two'


def test_a_stream_that_breaks_off_keeps_what_was_reported(
    server: ServerProcess, http: HttpClient, path: str
) -> None:
    stream = Stream(server, path)
    with closing(stream.socket):
        stream.send(json.dumps(text("kept", partition_id=0)).encode() + b'{"value": {"type"')
        assert stream.read_until(1)[0]["offset"] == 0
    assert [record.value for record in stored(server, path.split("/")[-2], 1)] == [b"kept"]
    assert reports(http.post(path, text("next", partition_id=0)))[0]["offset"] == 1


def test_what_is_no_json_is_told_at_once(server: ServerProcess, http: HttpClient, path: str) -> None:
    stream = Stream(server, path)
    with closing(stream.socket):
        stream.send(json.dumps(text("a")).encode() + b"?")
        assert [each["error_code"] for each in stream.read_until(2)] == [200, 400]


def test_an_object_that_never_ends_is_not_kept(base: str) -> None:
    settings = ("--set", "kbroker.http.max.request.bytes=2000")
    with (
        ServerProcess("--in-memory", "--http-port", "0", *settings) as server,
        HttpClient(server.url) as http,
    ):
        (cluster,) = http.get("/v3/clusters").json["data"]
        stream = Stream(server, f"/v3/clusters/{cluster['cluster_id']}/topics/t/records")
        with closing(stream.socket):
            stream.send(json.dumps(text("a")).encode())
            assert stream.read_until(1)[0]["error_code"] == 200
            stream.send(b'{"value": {"type": "STRING", "data": "' + b"x" * 1990)
            last = stream.read_until(2)[-1]
            assert last["error_code"] == 400
            assert "2000 bytes" in last["message"]
            while stream.socket.recv(65536):
                pass


def test_a_batch_says_by_id_what_became_of_its_entries(
    server: ServerProcess, http: HttpClient, path: str
) -> None:
    entries = [
        {"id": "good", **text("a", partition_id=0)},
        {"id": "bad", "value": {"type": "BINARY", "data": "?"}},
        {"id": "schema", "value": {"type": "AVRO", "data": "?"}},
        {"id": "far", **text("a", partition_id=9)},
        {"id": "x" * 80, **text("b", partition_id=0)},
    ]
    answer = http.post(f"{path}:batch", {"entries": entries})
    assert answer.status == 207
    assert [(each["id"], each["offset"]) for each in answer.json["successes"]] == [("good", 0), ("x" * 80, 1)]
    failed = {each["id"]: each["error_code"] for each in answer.json["failures"]}
    assert failed == {"bad": 400, "schema": 501, "far": 40402}
    assert [record.value for record in stored(server, path.split("/")[-2], 2)] == [b"a", b"b"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"entries": []}, 422, 42208),
        ({"entries": [text("a")]}, 422, 42208),
        ({"entries": [{"id": ""}]}, 422, 42208),
        ({"entries": [{"id": 1}]}, 422, 42208),
        ({"entries": [{"id": "x" * 81}]}, 422, 42208),
        ({"entries": [{"id": "1"}, {"id": "1"}]}, 422, 42208),
        ({"entries": [{"id": str(number)} for number in range(1001)]}, 422, 42208),
        ({"entries": [7]}, 422, 42208),
        ({"entries": 7}, 400, 400),
        ({}, 400, 400),
    ],
)
def test_a_batch_that_makes_no_sense_is_refused(
    http: HttpClient, path: str, body: Any, status: int, code: int
) -> None:
    answer = http.post(f"{path}:batch", body)
    assert (answer.status, answer.json["error_code"]) == (status, code)
