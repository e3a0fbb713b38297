"""ACLs by kafka-python's admin client, and what its clients are told when they may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError

from compat.harness.authorized import EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF, one
from compat.harness.brokers import Server
from compat.harness.waiting import eventually


@pytest.fixture(scope="module")
def kafka_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with one(request.param, EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF) as server:
        yield server


def others_alone(kind: ResourceType, name: str) -> ACL:
    pattern = ResourcePattern(kind, name)
    return ACL("User:other", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, pattern)


def all_acls(kind: ResourceType, name: str) -> ACLFilter:
    pattern = ResourcePatternFilter(kind, name, ACLResourcePatternType.ANY)
    return ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)


def create(admin: KafkaAdminClient, acl: ACL) -> None:
    admin.create_acls([acl])
    wanted = all_acls(acl.resource_pattern.resource_type, acl.resource_pattern.resource_name)
    eventually(lambda: describe(admin, wanted), lambda found: found == [acl])


def describe(admin: KafkaAdminClient, wanted: ACLFilter) -> list[ACL]:
    acls, _ = admin.describe_acls(wanted)
    return list(acls)


def delete(admin: KafkaAdminClient, wanted: ACLFilter) -> None:
    admin.delete_acls([wanted])
    eventually(lambda: not describe(admin, wanted))


def test_acls_are_created_described_and_deleted(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, others_alone(ResourceType.TOPIC, topic))
    delete(admin, all_acls(ResourceType.TOPIC, topic))


def test_records_are_written_and_read_only_while_that_is_allowed(
    admin: KafkaAdminClient,
    producer: Callable[..., KafkaProducer],
    consumer: Callable[..., KafkaConsumer],
    topic: str,
) -> None:
    """On connections that stay open."""
    admin.create_topics([NewTopic(topic, 1, 1)])
    writer, reader = producer(retries=0), consumer(topic)
    for _ in range(3):
        writer.send(topic, b"before").get(10)
    assert len(reader_records(reader, 3)) == 3
    create(admin, others_alone(ResourceType.TOPIC, topic))
    with pytest.raises(TopicAuthorizationFailedError):
        writer.send(topic, b"refused").get(10)
    with pytest.raises(TopicAuthorizationFailedError):
        eventually(lambda: reader.poll(timeout_ms=200))
    delete(admin, all_acls(ResourceType.TOPIC, topic))
    writer.send(topic, b"after").get(10)


def reader_records(reader: KafkaConsumer, count: int) -> list[bytes]:
    found: list[bytes] = []

    def enough() -> bool:
        for records in reader.poll(timeout_ms=200).values():
            found.extend(record.value for record in records)
        return len(found) >= count

    eventually(enough)
    return found


def test_a_group_that_others_alone_may_use_is_refused(
    admin: KafkaAdminClient, kafka_server: Server, topic: str
) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    create(admin, others_alone(ResourceType.GROUP, topic))
    member = KafkaConsumer(topic, bootstrap_servers=kafka_server.bootstrap, group_id=topic)
    try:
        with pytest.raises(GroupAuthorizationFailedError):
            eventually(lambda: member.poll(timeout_ms=200))
    finally:
        member.close(autocommit=False)
