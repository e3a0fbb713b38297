"""Our table of version 3 against Confluent's, as its OpenAPI document has it."""

from __future__ import annotations

import pytest

from kbroker.http.table import endpoints
from tests.support.http_client import HttpClient

CLUSTER = "/v3/clusters/{cluster_id}"
TOPIC = f"{CLUSTER}/topics/{{topic_name}}"
PARTITION = f"{TOPIC}/partitions/{{partition_id}}"
BROKER = f"{CLUSTER}/brokers/{{broker_id}}"
GROUP = f"{CLUSTER}/consumer-groups/{{consumer_group_id}}"
CONSUMER = f"{GROUP}/consumers/{{consumer_id}}"

CONFLUENT = {
    "/v3/clusters": "GET",
    CLUSTER: "GET",
    f"{CLUSTER}/acls": "GET POST DELETE",
    f"{CLUSTER}/acls:batch": "POST",
    f"{CLUSTER}/broker-configs": "GET",
    f"{CLUSTER}/broker-configs:alter": "POST",
    f"{CLUSTER}/broker-configs/{{name}}": "GET PUT DELETE",
    f"{CLUSTER}/brokers": "GET",
    BROKER: "GET",
    f"{CLUSTER}/brokers/-/configs": "GET",
    f"{BROKER}/configs": "GET",
    f"{BROKER}/configs:alter": "POST",
    f"{BROKER}/configs/{{name}}": "GET PUT DELETE",
    f"{BROKER}/partition-replicas": "GET",
    f"{CLUSTER}/consumer-groups": "GET",
    GROUP: "GET",
    f"{GROUP}/consumers": "GET",
    f"{GROUP}/lag-summary": "GET",
    f"{GROUP}/lags": "GET",
    f"{GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}": "GET",
    CONSUMER: "GET",
    f"{CONSUMER}/assignments": "GET",
    f"{CONSUMER}/assignments/{{topic_name}}/partitions/{{partition_id}}": "GET",
    f"{CLUSTER}/topics": "GET POST",
    TOPIC: "GET PATCH DELETE",
    f"{TOPIC}/configs": "GET",
    f"{TOPIC}/configs:alter": "POST",
    f"{TOPIC}/configs/{{name}}": "GET PUT DELETE",
    f"{CLUSTER}/topics/-/configs": "GET",
    f"{TOPIC}/partitions": "GET",
    PARTITION: "GET",
    f"{PARTITION}/offset": "GET",
    f"{CLUSTER}/topics/-/partitions/-/reassignment": "GET",
    f"{TOPIC}/partitions/-/reassignment": "GET",
    f"{PARTITION}/reassignment": "GET",
    f"{PARTITION}/replicas": "GET",
    f"{PARTITION}/replicas/{{broker_id}}": "GET",
    f"{TOPIC}/records": "POST",
    f"{TOPIC}/records:batch": "POST",
}
ONLY_IN_ITS_SOURCE = {f"{CLUSTER}/topics/-/configs:alter": "POST"}


def test_every_path_and_method_is_there() -> None:
    ours: dict[str, set[str]] = {}
    for path, endpoint in endpoints():
        if path.startswith("/v3"):
            ours.setdefault(path, set()).add(endpoint.method)
    theirs = {path: set(methods.split()) for path, methods in {**CONFLUENT, **ONLY_IN_ITS_SOURCE}.items()}
    assert ours == theirs


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v3/no/such/path", 404, 404),
        ("PUT", "/v3/clusters", 405, 405),
        ("GET", "/v3/clusters/another", 404, 404),
        ("GET", "/v3/clusters/another/topics", 404, 404),
        ("GET", "/v3/clusters/another/acls", 404, 404),
        ("GET", "/v3/clusters/another/consumer-groups/g", 404, 404),
        ("GET", "/v3/clusters/another/brokers/-/configs", 404, 404),
        ("DELETE", "/v3/clusters/another/topics/t", 404, 404),
    ],
)
def test_what_leads_nowhere_is_told_in_confluents_form(
    http: HttpClient, method: str, path: str, status: int, code: int
) -> None:
    answer = http.ask(method, path)
    assert (answer.status, answer.media_type) == (status, "application/json")
    assert answer.json.keys() == {"error_code", "message"}
    assert answer.json["error_code"] == code
    assert answer.headers["X-Request-Id"]
