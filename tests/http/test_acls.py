"""ACLs by HTTP, plain and as Confluent's REST Proxy has them: made and found, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess, eventually

AUTHORIZER = ("--set", "authorizer.class.name=kbroker")
READ = {
    "resourceType": "TOPIC",
    "resourceName": "orders.",
    "patternType": "PREFIXED",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
V3_NAMES = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
V3_READ = dict(zip(V3_NAMES, READ.values(), strict=True))
EVERY = {"resourceType": "ANY", "patternType": "ANY", "operation": "ANY", "permission": "ANY"}
V3_EVERY = {"resource_type": "ANY", "pattern_type": "ANY", "operation": "ANY", "permission": "ANY"}


@pytest.fixture(scope="module")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def guarded(audit_file: Path) -> Iterator[ServerProcess]:
    """A broker with an authorizer, to which those who do not log in may do everything."""
    more = ("--set", "super.users=User:ANONYMOUS", "--set", f"kbroker.audit.log.file={audit_file}")
    with ServerProcess("--in-memory", "--http-port", "0", *AUTHORIZER, *more) as process:
        yield process


@pytest.fixture
def http(guarded: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(guarded.url) as client:
        yield client
        assert client.ask("DELETE", f"/acls?{urlencode(EVERY)}").status == 200


@pytest.fixture
def base(http: HttpClient) -> str:
    (cluster,) = http.get("/v3/clusters").json["data"]
    return f"/v3/clusters/{cluster['cluster_id']}"


def seen(server: ServerProcess) -> list[tuple[str, ...]]:
    """The ACLs as librdkafka finds them."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    every = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return sorted(
        (
            each.restype.name,
            each.name,
            each.resource_pattern_type.name,
            each.principal,
            each.host,
            each.operation.name,
            each.permission_type.name,
        )
        for each in admin.describe_acls(every).result(20)
    )


def refused(answer: Answer, status: int) -> dict[str, Any]:
    assert answer.status == status, answer
    found: dict[str, Any] = answer.json
    return found


def test_acls_are_created_found_and_deleted(guarded: ServerProcess, http: HttpClient) -> None:
    short = {"resourceType": "group", "resourceName": "g", "principal": "User:bob", "operation": "read"}
    made = http.post("/acls", {"acls": [READ, short]})
    assert made.status == 201
    assert made.json["acls"][1] == {
        "resourceType": "GROUP",
        "resourceName": "g",
        "patternType": "LITERAL",
        "principal": "User:bob",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    assert seen(guarded) == sorted(tuple(each.values()) for each in made.json["acls"])
    assert http.get("/acls?principal=User:alice").json == {"acls": [READ], "next": None}
    assert http.get("/acls?resourceType=TOPIC&patternType=MATCH&resourceName=orders.new").json["acls"] == [
        READ
    ]
    first = http.get("/acls?limit=1").json
    assert (first["acls"], first["next"]) == ([READ], 1)
    assert http.get("/acls?limit=1&after=1").json["next"] is None
    gone = http.ask("DELETE", f"/acls?{urlencode({**EVERY, 'principal': 'User:alice'})}")
    assert gone.json["acls"] == [READ]
    assert len(seen(guarded)) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"acls": [{}]},
        {"acls": [7]},
        {"acls": [{**READ, "operation": "ANY"}]},
        {"acls": [{**READ, "patternType": "MATCH"}]},
        {"acls": [{**READ, "resourceType": "PLANET"}]},
        {"acls": [READ, {**READ, "resourceName": ""}]},
        {"acls": [READ, {**READ, "resourceType": "CLUSTER"}]},
        {"acls": [{**READ, "colour": "red"}]},
    ],
)
def test_of_acls_that_make_no_sense_none_is_created(
    guarded: ServerProcess, http: HttpClient, body: Any
) -> None:
    assert refused(http.post("/acls", body), 400)["detail"]
    assert seen(guarded) == []


def test_nothing_is_deleted_by_half_a_filter(http: HttpClient) -> None:
    http.post("/acls", {"acls": [READ]})
    refused(http.ask("DELETE", "/acls"), 400)
    refused(http.ask("DELETE", "/acls?resourceType=TOPIC&patternType=ANY&operation=ANY"), 400)
    refused(http.get("/acls?operation=UNKNOWN"), 400)
    assert http.get("/acls").json["acls"] == [READ]


def test_confluents_proxy_creates_searches_and_deletes(
    guarded: ServerProcess, http: HttpClient, base: str
) -> None:
    made = http.post(f"{base}/acls", V3_READ)
    assert (made.status, made.body) == (201, b"")
    batch = [{**V3_READ, "principal": f"User:{number}"} for number in range(3)]
    assert http.post(f"{base}/acls:batch", {"data": batch}).status == 201
    assert len(seen(guarded)) == 4
    found = http.get(made.headers["Location"].removeprefix(http.url)).json
    assert found["kind"] == "KafkaAclList"
    (acl,) = found["data"]
    assert {name: acl[name] for name in V3_NAMES} == V3_READ
    assert acl["kind"] == "KafkaAcl"
    assert acl["metadata"]["self"] == made.headers["Location"]
    every = http.get(f"{base}/acls").json["data"]
    assert [each["principal"] for each in every] == ["User:0", "User:1", "User:2", "User:alice"]
    gone = http.ask("DELETE", f"{base}/acls?{urlencode({**V3_EVERY, 'principal': 'User:alice'})}")
    assert [each["principal"] for each in gone.json["data"]] == ["User:alice"]
    assert len(seen(guarded)) == 3
    assert refused(http.ask("DELETE", f"{base}/acls"), 400)["error_code"] == 400
    cluster = {**V3_READ, "resource_type": "CLUSTER", "resource_name": "elsewhere"}
    assert refused(http.post(f"{base}/acls", cluster), 400)["error_code"] == 40002
    assert refused(http.post(f"{base}/acls", {**V3_READ, "operation": "ANY"}), 400)["error_code"] == 400
    assert refused(http.post(f"{base}/acls", {}), 400)["error_code"] == 400


def test_the_audit_log_tells_what_was_changed_by_http(http: HttpClient, base: str, audit_file: Path) -> None:
    http.post("/topics", {"name": "audited", "configs": {"retention.ms": 5}})
    http.post("/topics", {"name": "audited"})
    http.ask("PATCH", "/topics/audited", json_body={"configs": {"retention.ms": None}})
    http.post(f"{base}/topics/audited/configs:alter", {"data": [{"name": "retention.ms", "value": "7"}]})
    http.ask("PATCH", f"{base}/topics/audited", json_body={"partitions_count": 2})
    http.ask("DELETE", "/topics/audited/partitions/0/records?before=latest")
    http.ask("DELETE", f"{base}/topics/audited")
    last = {**READ, "principal": "User:the-last"}
    http.post("/acls", {"acls": [last]})
    eventually(lambda: "User:the-last" in audit_file.read_text())
    events = [json.loads(line) for line in audit_file.read_text().splitlines()]
    changes = [event for event in events if event["event"] == "change"]
    of_topic = [event for event in changes if event["resource"] == "audited"]
    assert [(event["api"], event["outcome"]) for event in of_topic] == [
        ("POST /topics", "success"),
        ("POST /topics", "TOPIC_ALREADY_EXISTS"),
        ("PATCH /topics/{topic}", "success"),
        ("POST /clusters/{cluster_id}/topics/{topic_name}/configs:alter", "success"),
        ("PATCH /clusters/{cluster_id}/topics/{topic_name}", "success"),
        ("DELETE /topics/{topic}/partitions/{partition}/records", "success"),
        ("DELETE /clusters/{cluster_id}/topics/{topic_name}", "success"),
    ]
    assert of_topic[0]["details"]["configs"] == {"retention.ms": "5"}
    assert of_topic[3]["details"]["configs"] == [{"name": "retention.ms", "operation": "set", "value": "7"}]
    assert all(event["principal"] == "User:ANONYMOUS" for event in changes)
    assert (changes[-1]["resource_type"], changes[-1]["details"]) == ("ACL", last)


# refusals


@pytest.fixture(scope="module")
def closed() -> Iterator[HttpClient]:
    """A client that may do nothing."""
    arguments = ("--in-memory", "--http-port", "0", *AUTHORIZER)
    with ServerProcess(*arguments) as process, HttpClient(process.url) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/topics", {"name": "t"}),
        ("POST", "/topics?validateOnly=1", {"name": "t"}),
        ("GET", "/topics/t", None),
        ("PATCH", "/topics/t", {"configs": {"retention.ms": 1}}),
        ("DELETE", "/topics/t", None),
        ("GET", "/topics/t/configs", None),
        ("PATCH", "/topics/t/configs", {"retention.ms": 1}),
        ("GET", "/topics/t/partitions", None),
        ("POST", "/topics/t/partitions", {"partitions": 2}),
        ("GET", "/topics/t/partitions/0", None),
        ("GET", "/topics/t/partitions/0/leader", None),
        ("GET", "/topics/t/partitions/0/offset", None),
        ("DELETE", "/topics/t/partitions/0/records?before=0", None),
        ("GET", "/brokers/1/configs", None),
        ("PATCH", "/brokers/1/configs", {"log.retention.ms": 1}),
        ("GET", "/cluster/configs", None),
        ("PATCH", "/cluster/configs", {"max.connections": 1}),
        ("GET", "/groups/g/configs", None),
        ("PATCH", "/groups/g/configs", {"consumer.session.timeout.ms": 50_000}),
        ("GET", "/acls", None),
        ("POST", "/acls", {"acls": [READ]}),
        ("DELETE", f"/acls?{urlencode(EVERY)}", None),
    ],
)
def test_who_may_do_nothing_is_refused_by_every_plain_endpoint(
    closed: HttpClient, method: str, path: str, body: Any
) -> None:
    problem = refused(closed.ask(method, path, json_body=body), 403)
    assert problem["error"].endswith("_AUTHORIZATION_FAILED")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/topics", {"topic_name": "t"}),
        ("GET", "/topics/t", None),
        ("PATCH", "/topics/t", {"partitions_count": 2}),
        ("DELETE", "/topics/t", None),
        ("GET", "/topics/t/configs", None),
        ("GET", "/topics/t/configs/retention.ms", None),
        ("PUT", "/topics/t/configs/retention.ms", {"value": "1"}),
        ("DELETE", "/topics/t/configs/retention.ms", None),
        ("POST", "/topics/t/configs:alter", {"data": [{"name": "retention.ms", "value": "1"}]}),
        ("GET", "/topics/t/partitions", None),
        ("GET", "/topics/t/partitions/0", None),
        ("GET", "/topics/t/partitions/0/offset", None),
        ("GET", "/topics/t/partitions/0/replicas", None),
        ("GET", "/topics/t/partitions/0/replicas/1", None),
        ("GET", "/topics/t/partitions/0/reassignment", None),
        ("GET", "/topics/t/partitions/-/reassignment", None),
        ("GET", "/topics/-/partitions/-/reassignment", None),
        ("GET", "/brokers/1/configs", None),
        ("GET", "/brokers/-/configs", None),
        ("PUT", "/brokers/1/configs/log.retention.ms", {"value": "1"}),
        ("POST", "/brokers/1/configs:alter", {"data": []}),
        ("GET", "/broker-configs", None),
        ("PUT", "/broker-configs/max.connections", {"value": "1"}),
        ("POST", "/broker-configs:alter", {"data": [{"name": "max.connections", "value": "1"}]}),
        ("GET", "/acls", None),
        ("POST", "/acls", V3_READ),
        ("POST", "/acls:batch", {"data": [V3_READ]}),
        ("DELETE", f"/acls?{urlencode(V3_EVERY)}", None),
        ("GET", "/consumer-groups/g", None),
        ("GET", "/consumer-groups/g/consumers", None),
        ("GET", "/consumer-groups/g/lags", None),
        ("GET", "/consumer-groups/g/lag-summary", None),
    ],
)
def test_who_may_do_nothing_is_refused_by_every_endpoint_of_the_proxy(
    closed: HttpClient, method: str, path: str, body: Any
) -> None:
    (cluster,) = closed.get("/v3/clusters").json["data"]
    answer = closed.ask(method, f"/v3/clusters/{cluster['cluster_id']}{path}", json_body=body)
    assert refused(answer, 403)["error_code"] == 40301


def test_lists_have_nothing_for_who_may_do_nothing(closed: HttpClient) -> None:
    (cluster,) = closed.get("/v3/clusters").json["data"]
    base = f"/v3/clusters/{cluster['cluster_id']}"
    assert closed.get("/topics").json["topics"] == []
    assert closed.get("/brokers/1").json["logDirectory"] is None
    for path in ("/topics", "/topics/-/configs", "/consumer-groups", "/brokers/1/partition-replicas"):
        assert closed.get(base + path).json["data"] == []
    record = json.dumps({"value": {"type": "STRING", "data": "x"}})
    produced = closed.ask("POST", f"{base}/topics/t/records", record)
    assert (produced.status, produced.json["error_code"]) == (200, 40301)
