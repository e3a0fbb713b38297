"""GET /metrics: read by Prometheus' own parsers."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from kbroker.observability.families import COUNTER
from kbroker.observability.table import families
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.http_client import HttpClient
from tests.support.metrics import OPENMETRICS, scrape
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess

from .test_logins import basic


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


@pytest.mark.parametrize("openmetrics", [False, True])
def test_it_tells_topics_partitions_and_groups_as_kafka_exporter_does(
    server: ServerProcess, http: HttpClient, openmetrics: bool
) -> None:
    topic, group = f"orders-{openmetrics}", f'shop "{openmetrics}"\\\n'
    with server.client() as client:
        create(client, topic, 2)
        for _ in range(3):
            produce(client, topic, 1, b"value")
        commit = OffsetCommitRequestPartition(1, 1, committed_metadata="")
        asked = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(topic, partitions=[commit])]
        )
        client.ask(asked, 8)
    found = scrape(http, openmetrics=openmetrics)
    assert found.of("kafka_brokers") == 1
    assert found.of("kafka_topic_partitions", topic=topic) == 2
    at = {"topic": topic, "partition": "1"}
    assert found.of("kafka_topic_partition_current_offset", **at) == 3
    assert found.of("kafka_topic_partition_current_offset", topic=topic, partition="0") == 0
    assert found.of("kafka_topic_partition_oldest_offset", **at) == 0
    for name, expected in (
        ("leader", 1),
        ("replicas", 1),
        ("in_sync_replica", 1),
        ("leader_is_preferred", 1),
        ("under_replicated_partition", 0),
    ):
        assert found.of(f"kafka_topic_partition_{name}", **at) == expected
    assert found.of("kafka_consumergroup_current_offset", consumergroup=group, **at) == 1
    assert found.of("kafka_consumergroup_lag", consumergroup=group, **at) == 2
    assert found.of("kafka_consumergroup_lag_sum", consumergroup=group, topic=topic) == 2
    assert found.of("kafka_consumergroup_current_offset_sum", consumergroup=group, topic=topic) == 1
    assert found.of("kafka_consumergroup_members", consumergroup=group) == 0


def test_every_family_has_its_name_once_and_counters_end_in_total() -> None:
    names = [family.name for family in families()]
    assert len(names) == len(set(names))
    for family in families():
        assert (family.kind == COUNTER) == family.name.endswith("_total"), family.name
        assert family.doc.endswith(".")


def test_openmetrics_is_for_who_asks_for_it(http: HttpClient) -> None:
    plain = http.get("/metrics", Accept="text/plain;version=0.0.4;q=0.3,*/*;q=0.1")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    answer = http.get("/metrics", Accept=prometheus)
    assert answer.headers["content-type"] == OPENMETRICS
    assert answer.body.endswith(b"\n# EOF\n")
    assert http.get("/metrics").headers["content-type"].startswith("text/plain")


def test_a_topic_that_grows_or_goes_is_seen(server: ServerProcess, http: HttpClient) -> None:
    assert http.post("/topics", {"name": "grows", "partitions": 1}).status == 201
    assert scrape(http).of("kafka_topic_partition_current_offset", topic="grows", partition="0") == 0
    assert http.post("/topics/grows/partitions", {"partitions": 2}).status in (200, 201)
    assert scrape(http).of("kafka_topic_partition_current_offset", topic="grows", partition="1") == 0
    assert http.ask("DELETE", "/topics/grows").status in (200, 204)
    assert not [labels for _, labels in scrape(http).found if ("topic", "grows") in labels]


def test_series_beyond_the_setting_are_left_out_and_counted() -> None:
    bounded = ("--set", "kbroker.metrics.max.series=3")
    with ServerProcess("--in-memory", "--http-port", "0", *bounded) as server, HttpClient(server.url) as http:
        http.post("/topics", {"name": "many", "partitions": 10})
        found = scrape(http)
        assert len(found.labels("kafka_topic_partition_current_offset")) == 3
        assert found.of("kbroker_metrics_left_out", metric="kafka_topic_partition_current_offset") == 7


def test_it_is_compressed_for_who_takes_that(http: HttpClient) -> None:
    answer = http.get("/metrics", Accept_Encoding="gzip, deflate")
    assert answer.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in answer.headers["vary"]
    assert b"kafka_brokers 1\n" in gzip.decompress(answer.body)
    for plain in ("identity", "gzip;q=0", ""):
        answer = http.get("/metrics", Accept_Encoding=plain)
        assert "content-encoding" not in answer.headers
        assert b"kafka_brokers 1\n" in answer.body


def metrics_url(server: ServerProcess) -> str:
    """Of the port for metrics; the broker says so where it tells of its listeners."""
    return server.others["metrics"]


def test_a_port_of_its_own_serves_metrics_and_health_and_nothing_else() -> None:
    with ServerProcess("--in-memory", "--http-port", "off", "--metrics-port", "0") as server:
        with HttpClient(metrics_url(server)) as http:
            assert scrape(http).of("kafka_brokers") == 1
            assert http.get("/healthz").status == 200
            assert http.get("/topics").status == 404
            assert scrape(http).of("kbroker_connections", listener="METRICS") == 1
        assert server.url == ""


def test_metrics_are_for_who_may_describe_the_cluster() -> None:
    users = ("--user", "admin:admin-pw", "--user", "bob:bob-pw", "--set", "super.users=User:admin")
    ports = ("--http-port", "0", "--metrics-port", "0", "--set", "authorizer.class.name=kbroker")
    with ServerProcess("--in-memory", *ports, *users) as server:
        for url in (server.url, metrics_url(server)):
            with HttpClient(url) as http:
                assert http.get("/metrics").status == 401
                assert http.get("/metrics", **basic("bob", "bob-pw")).status == 403
                answer = http.get("/metrics", **basic("admin", "admin-pw"))
                assert answer.status == 200
                assert b"kafka_brokers 1\n" in answer.body
