"""confluent-kafka's ShareConsumer (librdkafka): members share partitions, each record is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat.clients.confluent.members import QUIET, produce, produce_one_batch
from compat.harness.brokers import Server

RECORDS = 40
VALUES = sorted(str(number).encode() for number in range(RECORDS))


@pytest.fixture
def filled(kafka_server: Server, new_topic: Callable[..., str]) -> str:
    topic = new_topic(partitions=2)
    produce(kafka_server.bootstrap, topic, 2, VALUES)
    return topic


@pytest.fixture
def single(kafka_server: Server, new_topic: Callable[..., str]) -> str:
    """All in one partition, so that one fetch gets them."""
    topic = new_topic()
    produce(kafka_server.bootstrap, topic, 1, VALUES)
    return topic


@pytest.fixture
def member(kafka_server: Server, admin: Any, unique: Callable[[str], str]) -> Iterator[Callable[..., Any]]:
    """Members of one share group that begins at the start of its topics."""
    group = unique("sharers")
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(30)
    with ExitStack() as stack:

        def start(topic: str, **configs: Any) -> ShareConsumer:
            settings = {"bootstrap.servers": kafka_server.bootstrap, "group.id": group, **QUIET}
            settings |= {name.replace("_", "."): value for name, value in configs.items()}
            consumer = stack.enter_context(ShareConsumer(settings))
            consumer.subscribe([topic])
            return consumer

        yield start


def read(count: int, *members: ShareConsumer, seconds: float = 60) -> list[Any]:
    """So many records, whoever of the members gets them."""
    got: list[Any] = []
    deadline = time.monotonic() + seconds
    while len(got) < count and time.monotonic() < deadline:
        for member in members:
            messages = member.poll(0.2)
            assert all(message.error() is None for message in messages)
            got += messages
    return got


def values(messages: list[Any]) -> list[bytes]:
    return sorted(message.value() for message in messages)


def test_members_share_a_topic(filled, member):
    one, two = member(filled), member(filled)
    assert values(read(RECORDS, one, two)) == VALUES


def test_what_is_committed_does_not_come_back(filled, member):
    one = member(filled)
    read(RECORDS, one)
    assert all(error is None for error in one.commit_sync(30).values())
    one.close()
    assert read(1, member(filled), seconds=3) == []


def test_what_a_closed_member_held_comes_again(filled, member):
    one = member(filled, share_acknowledgement_mode="explicit")
    held = read(1, one)
    one.close()
    again = read(RECORDS, member(filled))
    assert values(again) == VALUES
    assert sum(message.delivery_count() == 2 for message in again) == len(held)


def test_each_record_is_accepted_released_or_rejected(single, member):
    one = member(single, share_acknowledgement_mode="explicit")
    kinds = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
    got = read(1, one)
    assert len(got) == RECORDS
    for number, message in enumerate(got):
        one.acknowledge(message, kinds[number % 3])
    assert all(error is None for error in one.commit_sync(30).values())
    one.close()
    again = read(len(got[1::3]), member(single))
    assert values(again) == values(got[1::3])
    assert {message.delivery_count() for message in again} == {2}


def test_a_batch_of_very_many_records_is_consumed_once(
    kafka_server: Server, new_topic: Callable[..., str], member: Callable[..., Any]
) -> None:
    """Apache Kafka gives it whole, kbroker in parts."""
    topic = new_topic()
    produce_one_batch(kafka_server.bootstrap, topic, 25_000)
    assert [message.offset() for message in read(25_000, member(topic))] == list(range(25_000))
