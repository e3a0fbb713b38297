from __future__ import annotations

import pytest
from aiokafka.admin import NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from compat.harness.connection import Connection

from .clients import eventually


async def described(clients, topic):
    (found,) = await clients.admin.describe_topics([topic])
    return found


async def test_a_created_topic_is_listed_and_described(clients, kafka_server):
    topic = await clients.new_topic(partitions=3)
    assert topic in await clients.admin.list_topics()
    found = await described(clients, topic)
    assert [partition["partition"] for partition in found["partitions"]] == [0, 1, 2]
    assert {partition["leader"] for partition in found["partitions"]} == {kafka_server.node_id}


async def test_the_cluster_has_one_broker(clients, kafka_server):
    cluster = await clients.admin.describe_cluster()
    assert cluster["controller_id"] == kafka_server.node_id
    assert [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]] == [kafka_server.bootstrap]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_partitions": 0}, "InvalidPartitionsError"),
        ({"replication_factor": 2}, "InvalidReplicationFactorError"),
        ({"name": "not a name"}, "InvalidTopicError"),
        ({"topic_configs": {"retention.ms": "soon"}}, "InvalidConfigurationError"),
    ],
    ids=str,
)
async def test_a_bad_topic_is_refused(clients, topic, changes, expected):
    shape = {"name": topic, "num_partitions": 1, "replication_factor": 1, **changes}
    response = await clients.admin.create_topics([NewTopic(**shape)])
    assert [for_code(error[1]).__name__ for error in response.topic_errors] == [expected]


async def test_creating_twice_fails(clients):
    topic = await clients.new_topic()
    response = await clients.admin.create_topics([NewTopic(topic, 1, 1)])
    assert [for_code(error[1]).__name__ for error in response.topic_errors] == ["TopicAlreadyExistsError"]


async def test_validate_only_creates_nothing(clients, topic):
    await clients.admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)
    assert topic not in await clients.admin.list_topics()


async def test_a_deleted_topic_is_gone(clients):
    topic = await clients.new_topic()
    await clients.admin.delete_topics([topic])
    await eventually(clients.admin.list_topics, lambda names: topic not in names)


async def test_partitions_can_be_added(clients):
    topic = await clients.new_topic()
    await clients.admin.create_partitions({topic: NewPartitions(3)})
    await eventually(lambda: described(clients, topic), lambda found: len(found["partitions"]) == 3)


async def test_topic_configs_are_described_and_altered(clients):
    topic = await clients.new_topic(retention_ms="1234")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    assert (await topic_values(clients, resource))["retention.ms"] == "1234"
    altered = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"segment.ms": "60000"})
    await clients.admin.alter_configs([altered])
    await eventually(
        lambda: topic_values(clients, resource),
        lambda values: (values["segment.ms"], values["retention.ms"]) == ("60000", "604800000"),
    )


async def topic_values(clients, resource):
    (response,) = await clients.admin.describe_configs([resource])
    ((code, _, _, _, entries),) = response.resources
    assert code == 0
    return {entry[0]: entry[1] for entry in entries}


async def test_broker_configs_are_described(clients, kafka_server):
    resource = ConfigResource(ConfigResourceType.BROKER, str(kafka_server.node_id))
    assert (await topic_values(clients, resource))["node.id"] == str(kafka_server.node_id)


def test_the_versions_it_asks_for_are_offered(kafka_server):
    """aiokafka speaks only these, the oldest of any client here."""
    wanted = {0: 7, 1: 11, 2: 3, 3: 5, 18: 0, 19: 3, 20: 3, 21: 2, 22: 0, 32: 2, 33: 1, 37: 1}
    with Connection(kafka_server.bootstrap) as connection:
        offered = {each["ApiKey"]: each for each in connection.ask("ApiVersions", 0)["ApiKeys"]}
    for key, version in wanted.items():
        assert offered[key]["MinVersion"] <= version <= offered[key]["MaxVersion"]
