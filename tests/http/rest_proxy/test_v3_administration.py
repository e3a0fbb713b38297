"""Clusters, topics, configs and partitions by version 3 of the REST Proxy; Kafka's clients see the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess

_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def admin(server: ServerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


@pytest.fixture
def base(http: HttpClient) -> str:
    """The path of the cluster."""
    (cluster,) = http.get("/v3/clusters").json["data"]
    return f"/v3/clusters/{cluster['cluster_id']}"


@pytest.fixture
def topic(http: HttpClient, base: str) -> Iterator[str]:
    name = f"v3.with-dots_{next(_numbers)}"
    made = http.post(f"{base}/topics", {"topic_name": name, "partitions_count": 2})
    assert made.status == 201, made
    yield name
    http.ask("DELETE", f"{base}/topics/{name}")


def error(answer: Answer, status: int, code: int) -> None:
    assert answer.status == status, answer
    assert answer.json["error_code"] == code
    assert answer.json["message"]


def follow(http: HttpClient, link: dict[str, str]) -> Any:
    parts = urlsplit(link["related"])
    assert f"{parts.scheme}://{parts.netloc}" == http.url
    answer = http.get(parts.path)
    assert answer.status == 200, (link, answer)
    return answer.json


def configs_of(admin: AdminClient, kind: ConfigResource.Type, name: str) -> dict[str, str]:
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {name: entry.value for name, entry in future.result(20).items()}


def test_every_link_of_the_cluster_leads_somewhere(http: HttpClient, base: str, topic: str) -> None:
    cluster = http.get(base).json
    assert cluster["kind"] == "KafkaCluster"
    assert cluster["metadata"]["self"] == http.url + base
    assert cluster["metadata"]["resource_name"] == f"crn:///kafka={cluster['cluster_id']}"
    assert follow(http, cluster["controller"])["kind"] == "KafkaBroker"
    (broker,) = follow(http, cluster["brokers"])["data"]
    assert follow(http, broker["configs"])["kind"] == "KafkaBrokerConfigList"
    replicas = follow(http, broker["partition_replicas"])
    assert (replicas["kind"], replicas["metadata"]["next"]) == ("KafkaReplicaList", None)
    assert [each["partition_id"] for each in replicas["data"] if each["topic_name"] == topic] == [0, 1]
    assert follow(http, cluster["broker_configs"])["kind"] == "KafkaClusterConfigList"
    assert follow(http, cluster["consumer_groups"])["kind"] == "KafkaConsumerGroupList"
    assert follow(http, cluster["partition_reassignments"])["data"] == []
    topics = follow(http, cluster["topics"])
    assert topic in [each["topic_name"] for each in topics["data"]]
    error(http.get(f"{base}/acls"), 400, 40002)


def test_a_broker_is_told_as_kafka_tells_it(http: HttpClient, base: str, admin: AdminClient) -> None:
    (broker,) = http.get(f"{base}/brokers").json["data"]
    seen = admin.list_topics(timeout=20).brokers[broker["broker_id"]]
    assert (broker["host"], broker["port"]) == (seen.host, seen.port)
    assert http.get(f"{base}/brokers/{broker['broker_id']}").json == broker
    error(http.get(f"{base}/brokers/77"), 404, 404)
    error(http.get(f"{base}/brokers/x"), 400, 400)


def test_a_topic_is_created_described_grown_and_deleted(
    http: HttpClient, base: str, admin: AdminClient
) -> None:
    asked = {
        "topic_name": "v3-life",
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    only = http.post(f"{base}/topics", {**asked, "validate_only": True})
    assert (only.status, only.json["partitions_count"]) == (200, 2)
    error(http.get(f"{base}/topics/v3-life"), 404, 40403)
    made = http.post(f"{base}/topics", asked)
    assert made.status == 201
    topic = made.json
    assert made.headers["Location"] == topic["metadata"]["self"] == f"{http.url}{base}/topics/v3-life"
    assert topic["metadata"]["resource_name"].endswith("/topic=v3-life")
    assert (topic["kind"], topic["is_internal"]) == ("KafkaTopic", False)
    assert (topic["replication_factor"], topic["partitions_count"]) == (1, 2)
    assert http.get(f"{base}/topics/v3-life").json == topic
    assert follow(http, topic["configs"])["kind"] == "KafkaTopicConfigList"
    assert len(follow(http, topic["partitions"])["data"]) == 2
    assert follow(http, topic["partition_reassignments"])["data"] == []
    assert configs_of(admin, ConfigResource.Type.TOPIC, "v3-life")["cleanup.policy"] == "compact"
    error(http.post(f"{base}/topics", asked), 400, 40002)
    grown = http.ask("PATCH", f"{base}/topics/v3-life", json_body={"partitions_count": 3})
    assert (grown.status, grown.json["partitions_count"]) == (200, 3)
    assert len(admin.list_topics("v3-life", 20).topics["v3-life"].partitions) == 3
    error(http.ask("PATCH", f"{base}/topics/v3-life", json_body={"partitions_count": 3}), 400, 40002)
    error(http.ask("PATCH", f"{base}/topics/v3-life", json_body={}), 400, 400)
    shown = http.get(f"{base}/topics/v3-life?include_authorized_operations=true").json
    assert "READ" in shown["authorized_operations"]
    gone = http.ask("DELETE", f"{base}/topics/v3-life")
    assert (gone.status, gone.body) == (204, b"")
    error(http.ask("DELETE", f"{base}/topics/v3-life"), 404, 40403)
    assert "v3-life" not in admin.list_topics(timeout=20).topics


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"topic_name": "x", "partitions_count": 0}, 40002),
        ({"topic_name": "x", "replication_factor": 3}, 40002),
        ({"topic_name": "x", "configs": [{"name": "no.such", "value": "1"}]}, 40002),
        ({"topic_name": "x", "configs": [{"name": "retention.ms"}]}, 40002),
        ({"topic_name": "x/y"}, 40002),
        ({"topic_name": "x", "replicas_assignments": {"0": [99]}}, 40002),
        ({"topic_name": "x", "replicas_assignments": {"zero": [1]}}, 400),
        ({"topic_name": "x", "replicas_assignments": {"0": ["1"]}}, 400),
        ({"topic_name": "x", "partitions_count": "A"}, 400),
        ({"topic_name": "x", "configs": [7]}, 400),
        ({"partitions_count": 1}, 400),
        ([], 400),
    ],
)
def test_a_topic_that_may_not_be_is_refused(http: HttpClient, base: str, body: Any, code: int) -> None:
    error(http.post(f"{base}/topics", body), 400, code)


def test_replicas_may_be_assigned_to_the_one_broker(http: HttpClient, base: str) -> None:
    (broker,) = http.get(f"{base}/brokers").json["data"]
    assigned = {"0": [broker["broker_id"]], "1": [broker["broker_id"]]}
    made = http.post(f"{base}/topics", {"topic_name": "v3-assigned", "replicas_assignments": assigned})
    assert (made.status, made.json["partitions_count"]) == (201, 2)
    assert http.ask("DELETE", f"{base}/topics/v3-assigned").status == 204


def test_partitions_replicas_and_offsets_are_linked(http: HttpClient, base: str, topic: str) -> None:
    path = f"{base}/topics/{topic}/partitions"
    listed = http.get(path).json
    assert listed["kind"] == "KafkaPartitionList"
    assert [each["partition_id"] for each in listed["data"]] == [0, 1]
    partition = http.get(f"{path}/1").json
    assert partition == listed["data"][1]
    replica = follow(http, partition["leader"])
    assert (replica["kind"], replica["is_leader"], replica["is_in_sync"]) == ("KafkaReplica", True, True)
    assert follow(http, partition["replicas"])["data"] == [replica]
    assert follow(http, replica["broker"])["broker_id"] == replica["broker_id"]
    offsets = http.get(f"{path}/1/offset").json
    assert (offsets["kind"], offsets["earliest_offset"], offsets["latest_offset"]) == (
        "KafkaPartitionWithOffsets",
        0,
        0,
    )
    error(http.get(f"{path}/1/reassignment"), 404, 404)
    error(http.get(f"{path}/2"), 404, 40402)
    error(http.get(f"{path}/2/offset"), 404, 40402)
    error(http.get(f"{path}/x"), 400, 400)
    error(http.get(f"{path}/1/replicas/99"), 404, 404)
    error(http.get(f"{path}/1/offset?offset_type=median"), 400, 400)
    error(http.get(f"{base}/topics/never/partitions"), 404, 40403)
    assert http.get(f"{base}/topics/{topic}/partitions/-/reassignment").json["data"] == []


def test_configs_of_a_topic_are_set_altered_and_reset(
    http: HttpClient, base: str, topic: str, admin: AdminClient
) -> None:
    path = f"{base}/topics/{topic}/configs"
    assert http.ask("PUT", f"{path}/retention.ms", json_body={"value": "1234"}).status == 204
    config = http.get(f"{path}/retention.ms").json
    assert (config["value"], config["is_default"], config["source"]) == (
        "1234",
        False,
        "DYNAMIC_TOPIC_CONFIG",
    )
    assert config["synonyms"][0] == {
        "name": "retention.ms",
        "value": "1234",
        "source": "DYNAMIC_TOPIC_CONFIG",
    }
    assert config["metadata"]["resource_name"].endswith(f"/topic={topic}/config=retention.ms")
    assert configs_of(admin, ConfigResource.Type.TOPIC, topic)["retention.ms"] == "1234"
    changes = [{"name": "retention.ms", "operation": "DELETE"}, {"name": "compression.type", "value": "gzip"}]
    only = http.post(f"{path}:alter", {"data": changes, "validate_only": True})
    assert (only.status, http.get(f"{path}/retention.ms").json["value"]) == (204, "1234")
    assert http.post(f"{path}:alter", {"data": changes}).status == 204
    seen = configs_of(admin, ConfigResource.Type.TOPIC, topic)
    assert (seen["retention.ms"], seen["compression.type"]) == ("604800000", "gzip")
    assert http.ask("DELETE", f"{path}/compression.type").status == 204
    assert http.get(f"{path}/compression.type").json["is_default"]
    error(http.ask("PUT", f"{path}/retention.ms", json_body={"value": "soon"}), 400, 40002)
    error(http.ask("PUT", f"{path}/retention.ms", json_body={"value": None}), 400, 400)
    error(http.ask("PUT", f"{path}/no.such", json_body={"value": "1"}), 404, 404)
    error(http.ask("DELETE", f"{path}/no.such"), 404, 404)
    error(http.get(f"{path}/no.such"), 404, 404)
    error(http.post(f"{path}:alter", {"data": [{"name": "retention.ms", "operation": "ADD"}]}), 400, 400)
    error(http.post(f"{path}:alter", {}), 400, 400)
    error(http.get(f"{base}/topics/never/configs"), 404, 40403)


def test_configs_of_many_topics_are_altered_each_for_itself(http: HttpClient, base: str, topic: str) -> None:
    def entry(name: str, value: str) -> dict[str, Any]:
        return {"topic_name": name, "configs": [{"name": "retention.ms", "value": value}]}

    path = f"{base}/topics/-/configs:alter"
    assert http.post(path, {"data": [entry(topic, "55")]}).status == 204
    mixed = http.post(path, {"data": [entry(topic, "66"), entry("never", "66")]})
    assert mixed.status == 207
    (failure,) = mixed.json["failures"]
    assert (failure["topic_name"], failure["error_code"]) == ("never", 40403)
    every = http.get(f"{base}/topics/-/configs").json
    assert every["kind"] == "KafkaTopicConfigList"
    values = {(each["topic_name"], each["name"]): each["value"] for each in every["data"]}
    assert values[topic, "retention.ms"] == "66"
    assert len(values) == len(every["data"])


def test_configs_of_brokers_and_of_the_cluster(http: HttpClient, base: str, admin: AdminClient) -> None:
    (broker,) = http.get(f"{base}/brokers").json["data"]
    path = f"{base}/brokers/{broker['broker_id']}/configs"
    assert http.ask("PUT", f"{path}/log.retention.ms", json_body={"value": "777"}).status == 204
    config = http.get(f"{path}/log.retention.ms").json
    assert (config["kind"], config["source"]) == ("KafkaBrokerConfig", "DYNAMIC_BROKER_CONFIG")
    seen = configs_of(admin, ConfigResource.Type.BROKER, str(broker["broker_id"]))
    assert seen["log.retention.ms"] == "777"
    assert config in http.get(f"{base}/brokers/-/configs").json["data"]
    alter = {"data": [{"name": "log.retention.ms", "operation": "DELETE"}]}
    assert http.post(f"{path}:alter", alter).status == 204
    error(http.ask("PUT", f"{path}/no.such", json_body={"value": "1"}), 404, 404)
    error(http.ask("PUT", f"{path}/node.id", json_body={"value": "9"}), 400, 40002)
    error(http.get(f"{base}/brokers/99/configs"), 404, 404)

    everywhere = f"{base}/broker-configs"
    assert http.ask("PUT", f"{everywhere}/max.connections", json_body={"value": "5000"}).status == 204
    config = http.get(f"{everywhere}/max.connections").json
    assert (config["kind"], config["config_type"], config["value"]) == (
        "KafkaClusterConfig",
        "BROKER",
        "5000",
    )
    assert config["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    reset = {"data": [{"name": "max.connections", "operation": "DELETE"}]}
    assert http.post(f"{everywhere}:alter", reset).status == 204
    error(http.get(f"{everywhere}/max.connections"), 404, 404)
    assert http.ask("DELETE", f"{everywhere}/max.connections").status == 204


def test_long_lists_come_whole(http: HttpClient, base: str) -> None:
    asked = {"topic_name": "v3-wide", "partitions_count": 400}
    assert http.post(f"{base}/topics", asked).status == 201
    listed = http.get(f"{base}/topics/v3-wide/partitions").json
    assert [each["partition_id"] for each in listed["data"]] == list(range(400))
    assert http.ask("DELETE", f"{base}/topics/v3-wide").status == 204


def test_odd_names_reach_their_endpoints(http: HttpClient, base: str) -> None:
    """A name with a slash is a name; a dash in its place is not a topic's."""
    error(http.get(f"{base}/topics/a%2Fb"), 404, 40403)
    error(http.get(f"{base}/topics/a%2Fb/configs/c%2Fd"), 400, 40002)
    error(http.get(f"{base}/consumer-groups/a%2Fb%20%C3%A9"), 404, 404)
    error(http.get(f"{base}/topics/%FF"), 404, 40403)
    error(http.get(f"{base}/topics/-/partitions"), 404, 40403)
