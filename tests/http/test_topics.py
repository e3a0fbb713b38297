"""Topics, partitions, configs and the cluster by plain HTTP; kafka-python sees what was done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from kafka import KafkaProducer

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess

_names = iter(range(1, 1_000_000))


@pytest.fixture
def admin(server: ServerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


@pytest.fixture
def topic(http: HttpClient) -> Iterator[str]:
    """The name of one with three partitions."""
    name = f"admin.topic-{next(_names)}"
    assert http.post("/topics", {"name": name, "partitions": 3}).status == 201
    yield name
    http.ask("DELETE", f"/topics/{name}")


def produce(server: ServerProcess, topic: str, *values: bytes, partition: int = 0) -> None:
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=partition, timestamp_ms=1000 + number).get(20)


def configs_of(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in future.result(20).items()}


def problem(answer: Answer, status: int) -> dict[str, Any]:
    assert answer.status == status, answer
    assert answer.media_type == "application/problem+json"
    found: dict[str, Any] = answer.json
    return found


def test_a_created_topic_is_there_for_kafka_clients(http: HttpClient, admin: AdminClient) -> None:
    asked = {
        "name": "made",
        "partitions": 2,
        "configs": {"retention.ms": 60000, "cleanup.policy": ["compact"]},
    }
    answer = http.post("/api/v1/topics", asked)
    assert answer.status == 201
    assert answer.headers["Location"] == "/api/v1/topics/made"
    made = http.get(answer.headers["Location"]).json
    assert made == answer.json
    assert len(made["topicId"]) == 22
    assert (made["partitions"], made["replicationFactor"], made["internal"]) == (2, 1, False)
    assert made["configs"] == {"retention.ms": "60000", "cleanup.policy": "compact"}
    assert len(admin.list_topics("made", 20).topics["made"].partitions) == 2
    assert configs_of(admin, "made")["cleanup.policy"] == "compact"
    assert http.ask("DELETE", "/topics/made").json == {"name": "made", "topicId": made["topicId"]}
    assert "made" not in admin.list_topics(timeout=20).topics


def test_validate_only_creates_nothing(http: HttpClient) -> None:
    answer = http.post("/topics?validateOnly=true", {"name": "only-asked", "partitions": 7})
    assert (answer.status, answer.json["partitions"]) == (200, 7)
    assert http.get("/topics/only-asked").status == 404


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"name": "x", "partitions": 0}, 400, "INVALID_PARTITIONS"),
        ({"name": "x", "partitions": 20_000}, 403, "POLICY_VIOLATION"),
        ({"name": "x", "replicationFactor": 2}, 400, "INVALID_REPLICATION_FACTOR"),
        ({"name": "x y"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": ""}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "x", "configs": {"retention.ms": "soon"}}, 400, "INVALID_CONFIG"),
        ({"name": "x", "configs": {"no.such": 1}}, 400, "INVALID_CONFIG"),
        ({}, 400, None),
        ([], 400, None),
        ({"name": 1}, 400, None),
        ({"name": "x", "partitions": "2"}, 400, None),
        ({"name": "x", "partitions": True}, 400, None),
        ({"name": "x", "partitions": 1 << 40}, 400, None),
        ({"name": "x", "configs": []}, 400, None),
        ({"name": "x", "configs": {"retention.ms": {}}}, 400, None),
        ({"name": "x", "partitons": 2}, 400, None),
    ],
)
def test_a_topic_that_may_not_be_is_refused(
    http: HttpClient, body: Any, status: int, error: str | None
) -> None:
    refused = problem(http.post("/topics", body), status)
    assert refused.get("error") == error
    assert refused["detail"].endswith(".")
    assert http.get("/topics/x").status == 404


def test_a_body_that_is_no_json_is_refused(http: HttpClient) -> None:
    problem(http.ask("POST", "/topics", b"{name: 1}"), 400)
    problem(http.ask("POST", "/topics", b""), 400)


def test_a_topic_that_exists_is_a_conflict(http: HttpClient, topic: str) -> None:
    assert problem(http.post("/topics", {"name": topic}), 409)["error"] == "TOPIC_ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/configs"),
        ("GET", "/partitions"),
        ("GET", "/partitions/0"),
        ("GET", "/partitions/0/leader"),
        ("GET", "/partitions/0/offset"),
        ("DELETE", "/partitions/0/records?before=0"),
    ],
)
def test_an_unknown_topic_is_not_found(http: HttpClient, method: str, path: str) -> None:
    refused = problem(http.ask(method, f"/topics/never-made{path}"), 404)
    assert refused["error"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_topics_are_listed_page_by_page_by_prefix(http: HttpClient) -> None:
    names = [f"page.{number:02}" for number in range(7)]
    for name in names:
        http.post("/topics", {"name": name})
    seen: list[str] = []
    after = ""
    while True:
        page = http.get(f"/topics?prefix=page.&limit=3&after={after}").json
        seen += (topic["name"] for topic in page["topics"])
        after = page["next"]
        if after is None:
            break
    assert seen == names
    assert http.get("/topics?prefix=no-such").json == {"topics": [], "next": None}
    for limit in ("0", "1001", "-1", "x"):
        problem(http.get(f"/topics?limit={limit}"), 400)
    for name in names:
        http.ask("DELETE", f"/topics/{name}")


def test_configs_are_altered_and_taken_back(http: HttpClient, admin: AdminClient, topic: str) -> None:
    path = f"/topics/{topic}"
    answer = http.ask("PATCH", path, json_body={"configs": {"retention.ms": 5, "compression.type": "lz4"}})
    assert answer.json["configs"] == {"retention.ms": "5", "compression.type": "lz4"}
    assert configs_of(admin, topic)["retention.ms"] == "5"
    answer = http.ask("PATCH", f"{path}/configs", json_body={"retention.ms": None, "preallocate": True})
    of = {each["name"]: each for each in answer.json["configs"]}
    assert (of["retention.ms"]["value"], of["retention.ms"]["source"]) == ("604800000", "DEFAULT_CONFIG")
    assert (of["preallocate"]["value"], of["preallocate"]["default"]) == ("true", False)
    assert configs_of(admin, topic)["preallocate"] == "true"
    refused = http.ask("PATCH", path, json_body={"configs": {"retention.ms": 6, "no.such.config": "1"}})
    assert problem(refused, 400)["error"] == "INVALID_CONFIG"
    assert configs_of(admin, topic)["retention.ms"] == "604800000"
    only = http.ask("PATCH", f"{path}?validateOnly=true", json_body={"configs": {"retention.ms": 6}})
    assert (only.status, "retention.ms" in only.json["configs"]) == (200, False)
    problem(http.ask("PATCH", path, json_body={"configs": 1}), 400)
    problem(http.ask("PATCH", path, json_body={}), 400)


def test_a_topic_gets_more_partitions_and_never_fewer(
    http: HttpClient, admin: AdminClient, topic: str
) -> None:
    path = f"/topics/{topic}/partitions"
    assert http.post(path, {"partitions": 5}).json["partitions"] == 5
    assert len(admin.list_topics(topic, 20).topics[topic].partitions) == 5
    for count in (5, 2):
        assert problem(http.post(path, {"partitions": count}), 400)["error"] == "INVALID_PARTITIONS"
    problem(http.post(path, {}), 400)


def test_partitions_are_described_page_by_page(http: HttpClient, topic: str) -> None:
    first = http.get(f"/topics/{topic}/partitions?limit=2").json
    assert [each["partition"] for each in first["partitions"]] == [0, 1]
    second = http.get(f"/topics/{topic}/partitions?limit=2&after={first['next']}").json
    assert [each["partition"] for each in second["partitions"]] == [2]
    assert second["next"] is None
    assert http.get(f"/topics/{topic}/partitions?after=2").json["partitions"] == []


def test_a_partition_tells_its_metrics(server: ServerProcess, http: HttpClient, topic: str) -> None:
    path = f"/topics/{topic}/partitions/1"
    assert http.get(path).json["firstTimestamp"] is None
    produce(server, topic, b"a", b"b", b"c", partition=1)
    found = http.get(path).json
    assert (found["topic"], found["partition"]) == (topic, 1)
    assert (found["logStartOffset"], found["highWatermark"], found["logEndOffset"]) == (0, 3, 3)
    assert (found["firstTimestamp"], found["largestTimestamp"]) == (1000, 1002)
    assert found["sizeBytes"] > 0
    assert found["leader"] == found["replicas"][0] == found["inSyncReplicas"][0]
    leader = http.get(f"{path}/leader").json["leader"]
    assert (leader["id"], f"{leader['host']}:{leader['port']}") == (found["leader"], server.bootstrap)
    problem(http.get(f"/topics/{topic}/partitions/3"), 404)
    for wrong in ("x", "-1", "1.5", "99999999999"):
        problem(http.get(f"/topics/{topic}/partitions/{wrong}"), 400)


def test_offsets_are_found_by_name_and_time(server: ServerProcess, http: HttpClient, topic: str) -> None:
    produce(server, topic, b"a", b"b", b"c")
    path = f"/topics/{topic}/partitions/0/offset"

    def at(text: str) -> tuple[Any, Any]:
        found = http.get(f"{path}?at={quote(text)}").json
        return found["offset"], found["timestamp"]

    assert http.get(path).json["offset"] == 3
    assert at("earliest") == (0, None)
    assert at("latest") == (3, None)
    assert at("maxTimestamp") == (2, 1002)
    assert at("1001") == (1, 1001)
    assert at("1970-01-01T00:00:01.002+00:00") == (2, 1002)
    assert at("2000-01-01T00:00:00Z") == (None, None)
    for wrong in ("yesterday", "-5", "2000-01-01T00:00:00"):
        problem(http.get(f"{path}?at={wrong}"), 400)
    problem(http.get(f"{path}?isolation=maybe"), 400)


def test_records_are_deleted_from_the_front(server: ServerProcess, http: HttpClient, topic: str) -> None:
    produce(server, topic, b"a", b"b", b"c")
    path = f"/topics/{topic}/partitions/0/records"
    assert http.ask("DELETE", f"{path}?before=2").json["logStartOffset"] == 2
    assert http.get(f"/topics/{topic}/partitions/0").json["logStartOffset"] == 2
    assert http.ask("DELETE", f"{path}?before=1").json["logStartOffset"] == 2
    assert http.ask("DELETE", f"{path}?before=latest").json["logStartOffset"] == 3
    assert problem(http.ask("DELETE", f"{path}?before=4"), 416)["error"] == "OFFSET_OUT_OF_RANGE"
    problem(http.ask("DELETE", path), 400)
    problem(http.ask("DELETE", f"{path}?before=-1"), 400)


def test_the_cluster_names_its_brokers_as_kafka_does(
    server: ServerProcess, http: HttpClient, admin: AdminClient
) -> None:
    cluster = http.get("/cluster").json
    seen = admin.list_topics(timeout=20)
    assert cluster["clusterId"] == seen.cluster_id
    assert cluster["controllerId"] == seen.controller_id
    (broker,) = cluster["brokers"]
    assert {broker["id"]: broker["port"]} == {each.id: each.port for each in seen.brokers.values()}
    assert http.get("/brokers").json["brokers"] == [broker]
    described = http.get(f"/brokers/{broker['id']}").json
    assert described["logDirectory"]["usableBytes"]
    problem(http.get("/brokers/99"), 404)


def test_configs_of_brokers_the_cluster_and_groups_are_altered(http: HttpClient) -> None:
    def of(path: str) -> dict[str, Any]:
        return {each["name"]: each for each in http.get(path).json["configs"]}

    broker = f"/brokers/{http.get('/cluster').json['controllerId']}/configs"
    assert http.ask("PATCH", broker, json_body={"log.retention.ms": 777}).status == 200
    assert of(broker)["log.retention.ms"]["source"] == "DYNAMIC_BROKER_CONFIG"
    assert http.ask("PATCH", broker, json_body={"log.retention.ms": None}).status == 200
    assert http.ask("PATCH", "/cluster/configs", json_body={"max.connections": 5000}).status == 200
    assert of("/cluster/configs")["max.connections"]["value"] == "5000"
    assert http.ask("PATCH", "/cluster/configs", json_body={"max.connections": None}).status == 200
    assert "max.connections" not in of("/cluster/configs")
    group = "/groups/some%2Fgroup/configs"
    assert http.ask("PATCH", group, json_body={"consumer.session.timeout.ms": 50_000}).status == 200
    assert of(group)["consumer.session.timeout.ms"]["source"] == "GROUP_CONFIG"
    assert http.ask("PATCH", group, json_body={"consumer.session.timeout.ms": None}).status == 200
    assert problem(http.ask("PATCH", broker, json_body={"node.id": 7}), 400)["error"] == "INVALID_REQUEST"
    problem(http.get("/brokers/99/configs"), 400)


def test_acls_need_an_authorizer(http: HttpClient) -> None:
    assert problem(http.get("/acls"), 403)["error"] == "SECURITY_DISABLED"
