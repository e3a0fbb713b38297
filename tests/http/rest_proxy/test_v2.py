"""Version 2 of Confluent's REST Proxy: what its clients send and get; kafka-python sees what was done."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess, eventually

V2 = "application/vnd.kafka.v2+json"
JSON_DATA = "application/vnd.kafka.json.v2+json"
BINARY_DATA = "application/vnd.kafka.binary.v2+json"
_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def topic(http: HttpClient) -> Iterator[str]:
    """One with two partitions."""
    name = f"v2.topic-{next(_numbers)}"
    assert http.post("/topics", {"name": name, "partitions": 2}).status == 201
    yield name
    http.ask("DELETE", f"/topics/{name}")


@pytest.fixture
def group() -> str:
    return f"v2.group-{next(_numbers)}"


def ask(http: HttpClient, method: str, path: str, body: Any = None, accept: str = V2) -> Answer:
    headers = {"Accept": accept}
    if body is not None:
        headers["Content-Type"] = V2
    return http.ask(method, path, None if body is None else json.dumps(body), headers)


def produce(http: HttpClient, topic: str, *records: Any, media: str = JSON_DATA, partition: Any = "") -> Any:
    path = f"/topics/{topic}" + (f"/partitions/{partition}" if partition != "" else "")
    answer = http.ask("POST", path, json.dumps({"records": records}), {"Content-Type": media, "Accept": V2})
    assert answer.status == 200, answer
    assert answer.media_type == V2
    return answer.json


def created(http: HttpClient, group: str, **settings: Any) -> str:
    """The path of a new instance, as its base_uri has it."""
    given = {"auto.offset.reset": "earliest", **{name.replace("_", "."): s for name, s in settings.items()}}
    answer = ask(http, "POST", f"/consumers/{group}", given)
    assert answer.status == 200, answer
    assert answer.media_type == V2
    assert answer.json["base_uri"].startswith(http.url)
    path = urlsplit(answer.json["base_uri"]).path
    assert path.endswith(answer.json["instance_id"])
    return path


def polled(http: HttpClient, path: str, accept: str = BINARY_DATA, query: str = "") -> Any:
    answer = ask(http, "GET", f"{path}/records{query}", accept=accept)
    assert answer.status == 200, answer
    assert answer.media_type == accept
    return answer.json


def all_of(http: HttpClient, path: str, count: int, accept: str = JSON_DATA) -> list[Any]:
    """As many records, however many polls they take."""
    found: list[Any] = []

    def enough() -> bool:
        found.extend(polled(http, path, accept))
        return len(found) >= count

    eventually(enough)
    return found


def error(answer: Answer, code: int) -> str:
    assert answer.status == (code if code < 1000 else code // 100), answer
    assert answer.json["error_code"] == code
    assert set(answer.json) == {"error_code", "message"}
    return str(answer.json["message"])


def test_topics_partitions_and_brokers(http: HttpClient, topic: str) -> None:
    names = ask(http, "GET", "/topics")
    assert names.media_type == V2
    assert topic in names.json
    found = ask(http, "GET", f"/topics/{topic}").json
    assert found["name"] == topic
    assert found["configs"]["cleanup.policy"] == "delete"
    replica = {"broker": 1, "leader": True, "in_sync": True}
    partitions = [{"partition": number, "leader": 1, "replicas": [replica]} for number in range(2)]
    assert found["partitions"] == partitions
    assert ask(http, "GET", f"/topics/{topic}/partitions").json == partitions
    assert ask(http, "GET", f"/topics/{topic}/partitions/1").json == partitions[1]
    produce(http, topic, {"value": 1}, {"value": 2}, partition=1)
    assert ask(http, "GET", f"/topics/{topic}/partitions/1/offsets").json == {
        "beginning_offset": 0,
        "end_offset": 2,
    }
    assert ask(http, "GET", "/brokers").json == {"brokers": [1]}
    error(ask(http, "GET", "/topics/no.such"), 40401)
    error(ask(http, "GET", "/topics/no.such/partitions"), 40401)
    error(ask(http, "GET", f"/topics/{topic}/partitions/7"), 40402)
    error(ask(http, "GET", f"/topics/{topic}/partitions/7/offsets"), 40402)
    assert http.get("/topics").json["topics"], "without its media type the plain API answers"


def test_records_are_published_as_json_and_binary(
    server: ServerProcess, http: HttpClient, topic: str
) -> None:
    made = produce(
        http, topic, {"key": "k", "value": {"a": [1]}, "partition": 0}, {"value": None, "partition": 1}
    )
    assert made == {
        "offsets": [
            {"partition": 0, "offset": 0, "error_code": None, "error": None},
            {"partition": 1, "offset": 0, "error_code": None, "error": None},
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    data = b64encode(b"\xff\x00").decode()
    made = produce(http, topic, {"key": data, "value": data}, media=BINARY_DATA, partition=0)
    assert made["offsets"][0]["offset"] == 1
    partition = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=server.bootstrap)) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found: list[Any] = []

        def both() -> bool:
            found.extend(consumer.poll(500).get(partition, ()))
            return len(found) == 2

        eventually(both)
    assert [(each.key, each.value) for each in found] == [(b'"k"', b'{"a":[1]}'), (b"\xff\x00", b"\xff\x00")]


def test_a_record_that_fails_has_an_error_of_its_own(http: HttpClient, topic: str) -> None:
    offsets = produce(http, topic, {"value": 1, "partition": 0}, {"value": 2, "partition": 9})["offsets"]
    assert offsets[0]["offset"] == 0
    assert offsets[1]["partition"] is None
    assert offsets[1]["error_code"] in (40403, 50003)
    assert offsets[1]["error"]


@pytest.mark.parametrize("format_", ["avro", "jsonschema", "protobuf"])
def test_formats_with_schemas_are_not_there_yet(
    http: HttpClient, topic: str, group: str, format_: str
) -> None:
    media = f"application/vnd.kafka.{format_}.v2+json"
    body = json.dumps({"records": [{"value": {}}], "value_schema": "{}"})
    answer = http.ask("POST", f"/topics/{topic}", body, {"Content-Type": media})
    assert "Schema Registry" in error(answer, 501)
    answer = http.ask("POST", f"/topics/{topic}/partitions/0", body, {"Content-Type": media})
    error(answer, 501)
    error(ask(http, "POST", f"/consumers/{group}", {"format": format_}), 501)


def test_bodies_that_make_no_sense_are_refused(http: HttpClient, topic: str) -> None:
    path = f"/topics/{topic}"
    for body, code in (
        ("", 422),
        ("{}", 422),
        ('{"records": []}', 422),
        ("nonsense", 400),
        ('{"records": [1]}', 400),
        ('{"records": [{"value": "?"}]}', 400),
        ('{"records": [{"value": 1}]}', 400),
    ):
        error(http.ask("POST", path, body, {"Content-Type": BINARY_DATA}), code)
    error(http.ask("POST", path, "{}", {"Content-Type": "application/json"}), 415)
    error(http.ask("POST", path, "{}", {"Content-Type": "application/vnd.kafka.json.v1+json"}), 415)
    answer = http.ask(
        "POST", f"{path}/partitions/9", '{"records": [{"value": 1}]}', {"Content-Type": JSON_DATA}
    )
    error(answer, 40402)


def test_an_instance_reads_what_it_is_subscribed_to(http: HttpClient, topic: str, group: str) -> None:
    produce(http, topic, {"key": 1, "value": {"n": 1}}, {"key": 1, "value": {"n": 2}}, partition=1)
    path = created(http, group, name="me", format="json")
    assert path == f"/consumers/{group}/instances/me"
    assert ask(http, "POST", f"{path}/subscription", {"topics": [topic]}).status == 204
    assert ask(http, "GET", f"{path}/subscription").json == {"topics": [topic]}
    assert all_of(http, path, 2) == [
        {"topic": topic, "key": 1, "value": {"n": number}, "partition": 1, "offset": number - 1}
        for number in (1, 2)
    ]
    assert ask(http, "GET", f"{path}/assignments").json == {
        "partitions": [{"topic": topic, "partition": number} for number in range(2)]
    }
    assert ask(http, "DELETE", f"{path}/subscription").status == 204
    assert ask(http, "GET", f"{path}/subscription").json == {"topics": []}
    assert ask(http, "DELETE", path).status == 204
    error(ask(http, "GET", f"{path}/records"), 40403)


def test_an_instance_without_a_format_is_binary(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
        producer.send(topic, b"\xff", partition=0).get(20)
    path = created(http, group)
    ask(http, "POST", f"{path}/subscription", {"topic_pattern": topic.replace(".", "\\.")})
    (record,) = all_of(http, path, 1, BINARY_DATA)
    assert (record["key"], record["value"]) == (None, b64encode(b"\xff").decode())
    assert ask(http, "GET", f"{path}/subscription").json == {"topics": [topic]}
    error(ask(http, "GET", f"{path}/records", accept=JSON_DATA), 40601)
    error(ask(http, "GET", f"{path}/records", accept="text/html"), 406)
    assert ask(http, "GET", f"{path}/records?timeout=1", accept="*/*").media_type == BINARY_DATA
    ask(http, "DELETE", path)


def test_commits_name_the_last_record_and_are_found_again(http: HttpClient, topic: str, group: str) -> None:
    produce(http, topic, *({"value": number} for number in range(4)), partition=0)
    path = created(http, group, format="json", auto_commit_enable="false")
    ask(http, "POST", f"{path}/subscription", {"topics": [topic]})
    assert [each["value"] for each in all_of(http, path, 4)] == [0, 1, 2, 3]
    given = {"offsets": [{"topic": topic, "partition": 0, "offset": 1, "metadata": "m"}]}
    answer = ask(http, "POST", f"{path}/offsets", given)
    assert (answer.status, answer.json) == (200, [])
    asked = {"partitions": [{"topic": topic, "partition": number} for number in range(2)]}
    assert ask(http, "GET", f"{path}/offsets", asked).json == {
        "offsets": [{"topic": topic, "partition": 0, "offset": 2, "metadata": "m"}]
    }
    ask(http, "DELETE", path)
    again = created(http, group, format="json", auto_commit_enable=False)
    ask(http, "POST", f"{again}/subscription", {"topics": [topic]})
    assert [each["value"] for each in all_of(http, again, 2)] == [2, 3]
    assert ask(http, "POST", f"{again}/offsets").json == []
    found = ask(http, "GET", f"{again}/offsets", asked).json["offsets"]
    assert [each["offset"] for each in found if each["partition"] == 0] == [4]
    error(ask(http, "GET", f"{again}/offsets"), 40402)
    ask(http, "DELETE", again)


def test_positions_of_an_assigned_instance(http: HttpClient, topic: str, group: str) -> None:
    produce(http, topic, *({"value": number} for number in range(3)), partition=0)
    path = created(http, group, format="json")
    at = {"topic": topic, "partition": 0}
    assert ask(http, "POST", f"{path}/assignments", {"partitions": [at]}).status == 204
    assert ask(http, "GET", f"{path}/assignments").json == {"partitions": [at]}
    assert [each["value"] for each in all_of(http, path, 3)] == [0, 1, 2]
    assert ask(http, "POST", f"{path}/positions", {"offsets": [{**at, "offset": 2}]}).status == 204
    assert [each["value"] for each in polled(http, path, JSON_DATA)] == [2]
    assert ask(http, "POST", f"{path}/positions/beginning", {"partitions": [at]}).status == 204
    assert len(polled(http, path, JSON_DATA, "?max_bytes=1")) == 1
    assert ask(http, "POST", f"{path}/positions/end", {"partitions": [at]}).status == 204
    assert polled(http, path, JSON_DATA, "?timeout=10") == []
    early = {"timestamps": [{**at, "timestamp": "2001-01-01T00:00:00Z"}]}
    assert ask(http, "POST", f"{path}/positions", early).status == 204
    assert len(polled(http, path, JSON_DATA)) == 3
    late = {"timestamps": [{**at, "timestamp": "2901-01-01T00:00:00Z"}]}
    assert ask(http, "POST", f"{path}/positions", late).status == 204
    assert polled(http, path, JSON_DATA, "?timeout=10") == []
    other = {"topic": topic, "partition": 1}
    error(ask(http, "POST", f"{path}/positions", {"offsets": [{**other, "offset": 0}]}), 40903)
    error(ask(http, "POST", f"{path}/positions/end", {"partitions": [other]}), 40903)
    error(ask(http, "POST", f"{path}/subscription", {"topics": [topic]}), 40903)
    ask(http, "DELETE", path)


def test_a_record_that_is_no_json_stops_an_instance_until_it_seeks_past_it(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
        for value in (b"1", b"?", b"3"):
            producer.send(topic, value, partition=0).get(20)
    path = created(http, group, format="json")
    at = {"topic": topic, "partition": 0}
    ask(http, "POST", f"{path}/assignments", {"partitions": [at]})
    for _ in range(2):
        assert "offset 1" in error(ask(http, "GET", f"{path}/records", accept=JSON_DATA), 50002)
    ask(http, "POST", f"{path}/positions", {"offsets": [{**at, "offset": 2}]})
    assert [each["value"] for each in polled(http, path, JSON_DATA)] == [3]
    ask(http, "DELETE", path)


def test_what_is_refused_has_confluents_codes(http: HttpClient, topic: str, group: str) -> None:
    path = created(http, group, name="one")
    error(ask(http, "POST", f"/consumers/{group}", {"name": "one"}), 40902)
    error(ask(http, "POST", f"/consumers/{group}", {"id": "one"}), 40902)
    error(ask(http, "POST", f"/consumers/{group}", {"format": "xml"}), 422)
    error(ask(http, "POST", f"/consumers/{group}", {"auto.offset.reset": "x"}), 42204)
    error(ask(http, "POST", f"/consumers/{group}", {"auto.commit.enable": "x"}), 42204)
    error(ask(http, "POST", f"/consumers/{group}", {"consumer.request.timeout.ms": "x"}), 42204)
    error(ask(http, "POST", f"{path}/subscription", {}), 422)
    error(ask(http, "POST", f"{path}/subscription", {"topics": [topic], "topic_pattern": "x"}), 40903)
    error(ask(http, "GET", f"{path}/records"), 40903)
    error(http.ask("POST", f"/consumers/{group}", "x=1", {"Content-Type": "text/plain"}), 415)
    for method, rest in (
        ("DELETE", ""),
        ("GET", "/subscription"),
        ("DELETE", "/subscription"),
        ("GET", "/assignments"),
        ("GET", "/records"),
    ):
        error(ask(http, method, f"/consumers/{group}/instances/nobody{rest}"), 40403)
    error(ask(http, "PUT", f"/consumers/{group}"), 405)
    error(ask(http, "GET", "/consumers/a/b/c/d/e"), 404)
    ask(http, "DELETE", path)


def test_an_idle_instance_is_gone() -> None:
    with (
        ServerProcess(
            "--in-memory", "--http-port", "0", "--set", "kbroker.http.consumer.idle.ms=1000"
        ) as server,
        HttpClient(server.url) as http,
    ):
        path = created(http, "g")
        eventually(lambda: http.get("/groups/g/consumers").json["consumers"] == [])
        error(ask(http, "GET", f"{path}/records"), 40403)
