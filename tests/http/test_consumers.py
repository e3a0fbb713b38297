"""Consumers by plain HTTP: poll, commit, seek, leave; how long they live, and whose they are."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaProducer

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess, eventually

_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def topic(http: HttpClient) -> Iterator[str]:
    """One with two partitions."""
    name = f"consumers.topic-{next(_numbers)}"
    assert http.post("/topics", {"name": name, "partitions": 2}).status == 201
    yield name
    http.ask("DELETE", f"/topics/{name}")


@pytest.fixture
def group() -> str:
    return f"consumers.group-{next(_numbers)}"


def produce(server: ServerProcess, topic: str, *values: bytes, partition: int = 0, **more: Any) -> None:
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
        for value in values:
            producer.send(topic, value, partition=partition, **more)
        producer.flush(20)


def created(http: HttpClient, group: str, **settings: Any) -> str:
    answer = http.post(f"/groups/{group}/consumers", {"autoOffsetReset": "earliest", **settings})
    assert answer.status == 201, answer
    assert answer.json["url"].endswith(answer.headers["location"])
    return str(answer.headers["location"])


def polled(http: HttpClient, path: str, query: str = "maxWaitMs=5000&value=text") -> list[Any]:
    answer = http.get(f"{path}/records?{query}")
    assert answer.status == 200, answer
    records: list[Any] = answer.json["records"]
    return records


def values(records: list[Any]) -> list[str]:
    return [record["valueText"] for record in records]


def problem(answer: Answer, status: int) -> dict[str, Any]:
    assert answer.status == status, answer
    assert answer.media_type == "application/problem+json"
    found: dict[str, Any] = answer.json
    return found


def test_a_consumer_polls_commits_and_another_goes_on(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    produce(server, topic, b"0", b"1", b"2")
    path = created(http, group, name="c", topics=[topic], autoCommit=False)
    assert path == f"/groups/{group}/consumers/c"
    (first,) = polled(http, path, "maxWaitMs=5000&maxRecords=1")
    assert (first["topic"], first["partition"], first["offset"], first["value"]) == (topic, 0, 0, 0)
    assert http.post(f"{path}/commit", {}).json == {"refused": []}
    offsets = http.get(f"{path}/committed").json["offsets"]
    assert [(each["partition"], each["offset"]) for each in offsets] == [(0, 1), (1, 0)]
    assert values(polled(http, path)) == ["1", "2"]
    given = {"offsets": [{"topic": topic, "partition": 0, "offset": 2, "metadata": "two"}]}
    assert http.post(f"{path}/commit", given).json == {"refused": []}
    assert http.ask("DELETE", path).status == 204
    problem(http.get(path), 404)
    again = created(http, group, topics=[topic])
    assert values(polled(http, again)) == ["2"]
    http.ask("DELETE", again)


def test_records_come_in_the_encodings_that_are_asked_for(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    produce(server, topic, b'{"a":1}', key=b"k", headers=[("h", b"x")])
    produce(server, topic, b"\xff")
    path = created(http, group, topics=[topic])
    first, second = polled(http, path, "maxWaitMs=5000&key=json")
    assert (first["key"], first["value"], first["headers"]) == ("k", {"a": 1}, [{"key": "h", "value": "x"}])
    assert base64.b64decode(second["valueBase64"]) == b"\xff"
    assert http.post(f"{path}/seek", {"to": "earliest"}).status == 200
    first, second = polled(http, path, "maxWaitMs=5000&key=base64&value=base64")
    assert (first["keyBase64"], first["valueBase64"]) == ("aw==", "eyJhIjoxfQ==")
    problem(http.get(f"{path}/records?value=xml"), 400)
    http.ask("DELETE", path)


def test_seeks_and_positions(server: ServerProcess, http: HttpClient, topic: str, group: str) -> None:
    produce(server, topic, b"0", b"1", b"2")
    path = created(http, group, topics=[topic], autoCommit=False)
    assert values(polled(http, path)) == ["0", "1", "2"]
    positions = http.get(f"{path}/positions").json["positions"]
    assert [each["offset"] for each in positions] == [3, 0]
    seek = {"offsets": [{"topic": topic, "partition": 0, "offset": 1}]}
    assert http.post(f"{path}/seek", seek).status == 200
    assert values(polled(http, path)) == ["1", "2"]
    assert http.post(f"{path}/seek", {"to": "committed"}).status == 200
    assert values(polled(http, path)) == ["0", "1", "2"]
    assert http.post(f"{path}/seek", {"to": "latest"}).status == 200
    assert polled(http, path, "maxWaitMs=0") == []
    wrong = {"offsets": [{"topic": topic, "partition": 9, "offset": 1}]}
    assert "not assigned" in problem(http.post(f"{path}/seek", wrong), 409)["detail"]
    problem(http.post(f"{path}/seek", {}), 400)
    http.ask("DELETE", path)


def test_partitions_are_paused_and_assigned_by_hand(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    produce(server, topic, b"0")
    produce(server, topic, b"1", partition=1)
    both = [{"topic": topic, "partition": partition} for partition in range(2)]
    path = created(http, group, partitions=both)
    assert http.post(f"{path}/pause", {"partitions": both[:1]}).json["paused"] == both[:1]
    assert values(polled(http, path)) == ["1"]
    assert http.post(f"{path}/resume", {"partitions": both[:1]}).json["paused"] == []
    assert values(polled(http, path)) == ["0"]
    assert (
        http.ask("PUT", f"{path}/assignment", json_body={"partitions": both[1:]}).json["assignment"]
        == (both[1:])
    )
    assert (
        "does not go with"
        in problem(http.ask("PUT", f"{path}/subscription", json_body={"topics": [topic]}), 400)["detail"]
    )
    assert http.ask("DELETE", f"{path}/subscription").status == 204
    assert http.ask("PUT", f"{path}/subscription", json_body={"topics": [topic]}).status == 200
    eventually(lambda: http.get(path).json["assignment"] == both)
    http.ask("DELETE", path)


def test_a_pattern_finds_topics(server: ServerProcess, http: HttpClient, topic: str, group: str) -> None:
    produce(server, topic, b"x")
    path = created(http, group, pattern=topic.replace(".", "[.]") + "$")
    assert values(polled(http, path)) == ["x"]
    http.ask("DELETE", path)


def test_a_poll_waits_and_heartbeats_keep_the_consumer(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    path = created(http, group, topics=[topic], idleMs=1000)
    for _ in range(15):
        assert polled(http, path, "maxWaitMs=100") == []
    assert http.post(f"{path}/heartbeat", {}).json["idleMs"] == 1000
    others = created(http, group, topics=[topic], idleMs=1000)
    with HttpClient(server.url) as other:
        eventually(lambda: other.get(others).status == 404)
    assert problem(http.get(f"{others}/records"), 404)["error"] == "UNKNOWN_MEMBER_ID"


def test_a_client_that_goes_away_in_a_poll_loses_nothing(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    path = created(http, group, topics=[topic])
    assert polled(http, path, "maxWaitMs=500") == []
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(f"GET {path}/records?maxWaitMs=50000 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        # The door has read it when it answers another that came later.
        assert http.get(path).status == 200
    produce(server, topic, b"x")
    assert values(polled(http, path)) == ["x"]
    http.ask("DELETE", path)


def test_names_and_settings_that_do_not_go_are_refused(http: HttpClient, topic: str, group: str) -> None:
    path = created(http, group, name="c", topics=[topic])
    assert (
        problem(http.post(f"/groups/{group}/consumers", {"name": "c"}), 409)["error"] == "DUPLICATE_RESOURCE"
    )
    for wrong in (
        {"autoOffsetReset": "sometime"},
        {"isolation": "none"},
        {"idleMs": 1},
        {"nmae": "x"},
        {"topics": [topic], "pattern": "x"},
        {"topics": [7]},
        {"name": ""},
    ):
        problem(http.post(f"/groups/{group}/consumers", wrong), 400)
    problem(http.get(f"/groups/{group}/consumers/other/records"), 404)
    problem(http.get(f"{path}/records?maxWaitMs=999999"), 400)
    bare = created(http, group)
    assert "reads nothing" in problem(http.get(f"{bare}/records"), 400)["detail"]
    assert len(http.get(f"/groups/{group}/consumers").json["consumers"]) == 2
    for each in (path, bare):
        http.ask("DELETE", each)


def test_a_restart_ends_consumers_and_keeps_offsets(tmp_path: Any) -> None:
    with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server:
        with HttpClient(server.url) as http:
            assert http.post("/topics", {"name": "t", "partitions": 1}).status == 201
            produce(server, "t", b"0", b"1")
            path = created(http, "g", name="c", topics=["t"], autoCommit=False)
            assert values(polled(http, path, "maxWaitMs=5000&maxRecords=1&value=text")) == ["0"]
            assert http.post(f"{path}/commit", {}).json == {"refused": []}
        server.stop()
        server.start()
        with HttpClient(server.url) as http:
            assert "Create it again" in problem(http.get(f"{path}/records"), 404)["detail"]
            assert http.get("/groups/g").json["members"] == [], "it left when the broker stopped"
            path = created(http, "g", name="c", topics=["t"], autoCommit=False)
            assert values(polled(http, path)) == ["1"]


def test_no_more_consumers_than_allowed() -> None:
    with (
        ServerProcess("--in-memory", "--http-port", "0", "--set", "kbroker.http.max.consumers=2") as server,
        HttpClient(server.url) as http,
    ):
        first, _ = (created(http, "g") for _ in range(2))
        refused = problem(http.post("/groups/g/consumers", {}), 429)
        assert "kbroker.http.max.consumers" in refused["detail"]
        assert http.ask("DELETE", first).status == 204
        created(http, "g")
