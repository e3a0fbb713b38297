"""What /metrics tells of what librdkafka's clients do: kbroker only, Apache Kafka has no such door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import AcknowledgeType, Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from compat.clients.confluent.members import QUIET
from compat.harness.waiting import eventually
from tests.support.http_client import HttpClient
from tests.support.metrics import Samples, scrape
from tests.support.server_process import ServerProcess

RECORDS = 100
SECONDS = 30


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


@pytest.fixture
def settings(server: ServerProcess) -> dict[str, object]:
    return {"bootstrap.servers": server.bootstrap, **QUIET}


@pytest.fixture
def admin(settings: dict[str, object]) -> AdminClient:
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(SECONDS)
    return admin


def publish(settings: dict[str, object]) -> None:
    producer = Producer(settings)
    for number in range(RECORDS):
        producer.produce("orders", b"x" * 100, partition=number % 2)
    assert producer.flush(SECONDS) == 0


def read(consumer: Consumer | ShareConsumer, count: int) -> int:
    got = 0
    while got < count:
        found = consumer.consume(count - got, timeout=SECONDS)
        assert found
        got += sum(1 for message in found if message.error() is None)
    return got


def test_records_go_in_and_out_and_a_group_catches_up(
    settings: dict[str, object], admin: AdminClient, http: HttpClient
) -> None:
    publish(settings)
    found = scrape(http)
    assert found.of("kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == RECORDS
    assert found.of("kafka_server_brokertopicmetrics_bytesin_total", topic="orders") > RECORDS * 100
    assert found.sum("kafka_topic_partition_current_offset", topic="orders") == RECORDS
    assert found.sum("kafka_log_log_size", topic="orders") > RECORDS * 100
    assert found.of("kbroker_request_seconds_count", api="Produce") >= 1
    reading = settings | {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    with closing(Consumer(reading)) as consumer:
        consumer.subscribe(["orders"])
        assert read(consumer, RECORDS) == RECORDS
        consumer.commit(
            offsets=[TopicPartition("orders", 0, 20), TopicPartition("orders", 1, 50)], asynchronous=False
        )
        found = scrape(http)
        at = {"consumergroup": "g", "topic": "orders"}
        assert found.of("kafka_consumergroup_members", consumergroup="g") == 1
        assert found.of("kafka_consumergroup_lag", partition="0", **at) == RECORDS // 2 - 20
        assert found.of("kafka_consumergroup_lag_sum", **at) == RECORDS // 2 - 20
        assert found.of("kbroker_consumergroup_lag_seconds", partition="0", **at) > 0
        assert found.of("kbroker_consumergroup_lag_seconds", partition="1", **at) == 0
        assert found.of("kbroker_groups", type="classic", state="Stable") == 1
        assert found.of("kbroker_group_rebalances_total", type="classic") >= 1
    assert found.of("kafka_server_brokertopicmetrics_bytesout_total", topic="orders") > RECORDS * 100
    assert found.of("kbroker_request_seconds_count", api="OffsetCommit") == 1


def test_a_transaction_is_open_until_it_ends(
    settings: dict[str, object], admin: AdminClient, http: HttpClient
) -> None:
    producer = Producer({**settings, "transactional.id": "tx"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("orders", b"x")
    producer.flush(SECONDS)
    found = scrape(http)
    assert found.of("kbroker_open_transactions", state="Ongoing") == 1
    assert found.of("kbroker_oldest_transaction_seconds") > 0
    producer.commit_transaction(SECONDS)
    eventually(lambda: not scrape(http).labels("kbroker_open_transactions"))


def test_records_of_a_share_group_are_in_flight_until_they_are_acknowledged(
    settings: dict[str, object], admin: AdminClient, http: HttpClient
) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, "workers", incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(SECONDS)
    publish(settings)

    def acquired(found: Samples) -> float:
        return found.sum("kbroker_share_acquired_records", group="workers")

    explicit = {"group.id": "workers", "share.acknowledgement.mode": "explicit"}
    with ShareConsumer({**settings, **explicit}) as consumer:
        consumer.subscribe(["orders"])
        messages: list[object] = []
        while not messages:
            messages = consumer.poll(SECONDS)
        assert acquired(scrape(http)) >= len(messages)
        for message in messages:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        consumer.commit_sync(SECONDS)
        found = scrape(http)
        assert found.of("kbroker_share_acknowledged_records_total", group="workers") == len(messages)
        assert found.of("kbroker_share_deliveries_total", group="workers", delivery="1") >= len(messages)
        assert found.of("kbroker_groups", type="share", state="Stable") == 1
