"""Groups by plain HTTP: what administrators see and change; kafka-python and confluent-kafka see the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess, eventually

_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def topic(http: HttpClient) -> Iterator[str]:
    """One with two partitions."""
    name = f"groups.topic-{next(_numbers)}"
    assert http.post("/topics", {"name": name, "partitions": 2}).status == 201
    yield name
    http.ask("DELETE", f"/topics/{name}")


@pytest.fixture
def group() -> str:
    return f"groups.group-{next(_numbers)}"


def produce(server: ServerProcess, topic: str, count: int) -> None:
    """As many records into each of the two partitions, with timestamps 1000, 1001, …"""
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap)) as producer:
        for number in range(count):
            for partition in range(2):
                producer.send(topic, b"%d" % number, partition=partition, timestamp_ms=1000 + number)
        producer.flush(20)


def committed(server: ServerProcess, group: str, topic: str) -> list[int]:
    """What Kafka's admin client is told."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition) for partition in range(2)])
    (future,) = admin.list_consumer_group_offsets([asked]).values()
    return [each.offset for each in future.result(20).topic_partitions]


def commit(http: HttpClient, group: str, topic: str, *offsets: int) -> None:
    given = [
        {"topic": topic, "partition": partition, "offset": offset} for partition, offset in enumerate(offsets)
    ]
    answer = http.post(f"/groups/{group}/offsets", {"offsets": given})
    assert answer.status == 200
    assert answer.json == {"refused": []}


def problem(answer: Answer, status: int) -> dict[str, Any]:
    assert answer.status == status, answer
    assert answer.media_type == "application/problem+json"
    found: dict[str, Any] = answer.json
    return found


def test_offsets_are_committed_read_and_deleted(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    produce(server, topic, 3)
    commit(http, group, topic, 1, 2)
    assert committed(server, group, topic) == [1, 2]
    offsets = http.get(f"/api/v1/groups/{group}/offsets").json["offsets"]
    assert [(each["partition"], each["offset"]) for each in offsets] == [(0, 1), (1, 2)]
    assert http.ask("DELETE", f"/groups/{group}/offsets?topic={topic}&partition=0").json == {"refused": []}
    assert [each["partition"] for each in http.get(f"/groups/{group}/offsets").json["offsets"]] == [1]
    assert http.ask("DELETE", f"/groups/{group}/offsets?topic={topic}").json == {"refused": []}
    assert http.get(f"/groups/{group}/offsets").json["offsets"] == []


def test_a_commit_of_a_partition_that_is_not_there_is_refused_by_itself(
    http: HttpClient, topic: str, group: str
) -> None:
    given = [{"topic": topic, "partition": partition, "offset": 0} for partition in (0, 7)]
    answer = http.post(f"/groups/{group}/offsets", {"offsets": given})
    (refused,) = answer.json["refused"]
    assert (refused["partition"], refused["error"]) == (7, "UNKNOWN_TOPIC_OR_PARTITION")


def test_lag_is_told_in_all_and_by_partition(
    server: ServerProcess, http: HttpClient, topic: str, group: str
) -> None:
    produce(server, topic, 10)
    commit(http, group, topic, 4, 10)
    lag = http.get(f"/groups/{group}/lag").json
    assert (lag["groupId"], lag["lag"], lag["state"]) == (group, 6, "Empty")
    assert [(each["committedOffset"], each["logEndOffset"], each["lag"]) for each in lag["partitions"]] == [
        (4, 10, 6),
        (10, 10, 0),
    ]


@pytest.mark.parametrize(
    ("to", "offsets"),
    [
        ("earliest", [0, 0]),
        ("latest", [10, 10]),
        ({"offset": 7}, [7, 7]),
        ({"time": 1005}, [5, 5]),
        ({"shift": -2}, [3, 4]),
    ],
)
def test_offsets_are_reset(
    server: ServerProcess, http: HttpClient, topic: str, group: str, to: Any, offsets: list[int]
) -> None:
    produce(server, topic, 10)
    commit(http, group, topic, 5, 6)
    for dry_run in (True, False):
        answer = http.post(f"/groups/{group}/reset", {"to": to, "dryRun": dry_run})
        assert answer.status == 200
        changes = [(each["before"], each["after"]) for each in answer.json["offsets"]]
        assert changes == list(zip([5, 6], offsets, strict=True))
        assert committed(server, group, topic) == ([5, 6] if dry_run else offsets)


def test_nonsense_is_told(http: HttpClient, topic: str, group: str) -> None:
    assert "earliest" in problem(http.post(f"/groups/{group}/reset", {"to": "nowhere"}), 400)["detail"]
    assert "has read nothing" in problem(http.post(f"/groups/{group}/reset", {"to": "latest"}), 400)["detail"]
    missing = {"to": "latest", "topics": ["no.such.topic"]}
    problem(http.post(f"/groups/{group}/reset", missing), 404)
    problem(http.post(f"/groups/{group}/offsets", {"offsets": [{"topic": topic}]}), 400)
    problem(http.ask("DELETE", f"/groups/{group}/offsets"), 400)
    problem(http.get(f"/groups/{group}"), 404)
    problem(http.get(f"/groups/{group}/lag"), 404)
    problem(http.ask("DELETE", f"/groups/{group}"), 404)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_a_kafka_client_is_described_and_not_changed_under_it(
    server: ServerProcess, http: HttpClient, topic: str, group: str, protocol: str
) -> None:
    produce(server, topic, 1)
    settings = {"bootstrap.servers": server.bootstrap, "group.id": group, "group.protocol": protocol}
    if protocol == "classic":
        settings["session.timeout.ms"] = "10000"
    consumer = Consumer({**settings, "client.id": "real", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == 2

        eventually(assigned)
        described = http.get(f"/groups/{group}").json
        assert (described["type"], described["state"]) == (protocol, "Stable")
        (member,) = described["members"]
        assert (member["clientId"], member["protocol"], member["topics"]) == ("real", protocol, [topic])
        assert member["assignment"] == [{"topic": topic, "partition": p} for p in range(2)]
        listed = http.get(f"/groups?prefix={group}&type={protocol}").json["groups"]
        assert listed == [{"groupId": group, "type": protocol, "state": "Stable"}]
        assert http.get(f"/groups?prefix={group}&state=empty").json["groups"] == []
        assert (
            problem(http.post(f"/groups/{group}/reset", {"to": "latest", "topics": [topic]}), 409)["error"]
            == "NON_EMPTY_GROUP"
        )
        assert problem(http.ask("DELETE", f"/groups/{group}"), 409)["error"] == "NON_EMPTY_GROUP"
    finally:
        consumer.close()
    assert http.ask("DELETE", f"/groups/{group}").status == 204
    problem(http.get(f"/groups/{group}"), 404)


def test_groups_are_listed_page_by_page(http: HttpClient, topic: str) -> None:
    prefix = f"paged-{next(_numbers)}"
    for number in range(5):
        commit(http, f"{prefix}-{number}", topic, 0)
    seen: list[str] = []
    after = ""
    while True:
        page = http.get(f"/groups?prefix={prefix}&limit=2&after={after}").json
        seen += [each["groupId"] for each in page["groups"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == [f"{prefix}-{number}" for number in range(5)]
