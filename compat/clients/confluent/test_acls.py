"""ACLs by librdkafka's admin client, and what its clients are told when they may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from compat.harness.authorized import EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF, one
from compat.harness.brokers import Server
from compat.harness.waiting import eventually


@pytest.fixture(scope="module")
def kafka_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with one(request.param, EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF) as server:
        yield server


def others_alone(name: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, pattern, "User:other", "*", AclOperation.ALL, AclPermissionType.ALLOW
    )


def about(name: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def create(admin: AdminClient, acl: AclBinding) -> None:
    for created in admin.create_acls([acl]).values():
        created.result(10)
    eventually(lambda: acl in admin.describe_acls(about(acl.name)).result(10))


def delete(admin: AdminClient, name: str) -> list[AclBinding]:
    (deleted,) = admin.delete_acls([about(name)]).values()
    found: list[AclBinding] = deleted.result(10)
    eventually(lambda: not admin.describe_acls(about(name)).result(10))
    return found


def test_acls_are_created_described_and_deleted(admin: AdminClient, topic: str) -> None:
    acls = [others_alone(topic), others_alone(topic[:-1], ResourcePatternType.PREFIXED)]
    for acl in acls:
        create(admin, acl)
    assert sorted(delete(admin, topic), key=str) == sorted(acls, key=str)


def test_records_are_written_and_read_only_while_that_is_allowed(
    admin: AdminClient,
    producer: Callable[..., Producer],
    consumer: Callable[..., Consumer],
    topic: str,
) -> None:
    """On connections that stay open."""
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
    writer = producer({"linger.ms": 0})
    outcomes: list[int] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcomes.append(0 if error is None else error.code())

    def write() -> int:
        try:
            writer.produce(topic, b"x", on_delivery=delivered)
        except KafkaException as refusal:  # the client knows already
            outcomes.append(refusal.args[0].code())
        writer.flush(10)
        return outcomes[-1]

    assert [write() for _ in range(3)] == [0, 0, 0]
    reader = consumer(topic)
    eventually(lambda: reader.poll(0.2), lambda message: message is not None and message.error() is None)
    create(admin, others_alone(topic))
    assert write() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    eventually(
        lambda: reader.poll(0.2),
        lambda message: (
            message is not None
            and message.error() is not None
            and message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        ),
    )
    delete(admin, topic)
    eventually(write, lambda code: code == 0)
