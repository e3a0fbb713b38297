"""Consumer groups and their lag by version 3, with real consumers of both protocols in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.http_client import Answer, HttpClient
from tests.support.server_process import ServerProcess

_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def base(http: HttpClient) -> str:
    (cluster,) = http.get("/v3/clusters").json["data"]
    return f"/v3/clusters/{cluster['cluster_id']}"


@pytest.fixture
def topic(server: ServerProcess, http: HttpClient, base: str) -> Iterator[str]:
    """With three records in partition 0 and one in partition 1."""
    name = f"v3-groups-{next(_numbers)}"
    assert http.post(f"{base}/topics", {"topic_name": name, "partitions_count": 2}).status == 201
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for partition in (0, 0, 0, 1):
        producer.produce(name, b"x", partition=partition)
    assert producer.flush(20) == 0
    yield name
    http.ask("DELETE", f"{base}/topics/{name}")


def consumer(server: ServerProcess, group: str, **more: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


def error(answer: Answer, status: int, code: int) -> None:
    assert answer.status == status, answer
    assert answer.json["error_code"] == code


def follow(http: HttpClient, link: dict[str, str]) -> Any:
    answer = http.get(urlsplit(link["related"]).path)
    assert answer.status == 200, (link, answer)
    return answer.json


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_tells_its_consumers_and_how_far_they_are_behind(
    server: ServerProcess, http: HttpClient, base: str, topic: str, protocol: str
) -> None:
    group_id = f"odd group/{protocol}"
    more = {"group_protocol": protocol, "client_id": "reader"}
    reader = consumer(server, group_id, **more)
    try:
        reader.subscribe([topic])
        assert reader.poll(20) is not None
        reader.commit(offsets=[TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 1)], asynchronous=False)
        path = f"{base}/consumer-groups/{quote(group_id, safe='')}"
        group = http.get(path).json
        assert (group["kind"], group["consumer_group_id"]) == ("KafkaConsumerGroup", group_id)
        assert (group["state"], group["type"], group["is_simple"]) == ("STABLE", protocol.upper(), False)
        assert not group["is_mixed_consumer_group"]
        assert group["partition_assignor"]
        assert group in http.get(f"{base}/consumer-groups").json["data"]
        assert follow(http, group["coordinator"])["kind"] == "KafkaBroker"
        (member,) = follow(http, group["consumers"])["data"]
        assert (member["client_id"], member["instance_id"]) == ("reader", None)
        assert http.get(f"{path}/consumers/{quote(member['consumer_id'], safe='')}").json == member
        assigned = follow(http, member["assignments"])["data"]
        assert [(each["topic_name"], each["partition_id"]) for each in assigned] == [(topic, 0), (topic, 1)]
        assert follow(http, assigned[0]["partition"])["partition_id"] == 0
        lag = follow(http, assigned[0]["lag"])
        assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (1, 3, 2)
        assert (lag["consumer_id"], lag["client_id"]) == (member["consumer_id"], "reader")
        one = urlsplit(assigned[0]["metadata"]["self"]).path
        assert http.get(one).json == assigned[0]
        error(http.get(one.replace("/partitions/0", "/partitions/7")), 404, 404)
        lags = http.get(f"{path}/lags").json["data"]
        assert [each["lag"] for each in lags] == [2, 0]
        summary = follow(http, group["lag_summary"])
        assert (summary["max_lag"], summary["total_lag"]) == (2, 2)
        assert (summary["max_lag_topic_name"], summary["max_lag_partition_id"]) == (topic, 0)
        assert follow(http, summary["max_lag_consumer"]) == member
        assert follow(http, summary["max_lag_partition"])["partition_id"] == 0
        error(http.get(f"{path}/consumers/nobody"), 404, 404)
        error(http.get(f"{path}/lags/{topic}/partitions/9"), 404, 404)
    finally:
        reader.close()


def test_a_group_that_only_commits_is_simple(
    server: ServerProcess, http: HttpClient, base: str, topic: str
) -> None:
    committer = consumer(server, "v3-simple")
    committer.commit(offsets=[TopicPartition(topic, 1, 0)], asynchronous=False)
    committer.close()
    group = http.get(f"{base}/consumer-groups/v3-simple").json
    assert (group["is_simple"], group["state"]) == (True, "EMPTY")
    summary = follow(http, group["lag_summary"])
    assert (summary["total_lag"], summary["max_lag_consumer_id"]) == (1, "")


def test_an_unknown_group_is_not_found(http: HttpClient, base: str) -> None:
    for path in ("", "/consumers", "/consumers/c", "/consumers/c/assignments", "/lags", "/lag-summary"):
        error(http.get(f"{base}/consumer-groups/never{path}"), 404, 404)
