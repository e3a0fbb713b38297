from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import NewPartitions, NewTopic

from compat.harness.waiting import eventually


def result(futures):
    (future,) = futures.values()
    return future.result(30)


def error_code(futures):
    with pytest.raises(KafkaException) as caught:
        result(futures)
    return caught.value.args[0].code()


def test_a_created_topic_is_in_the_metadata(admin, kafka_server, new_topic):
    topic = new_topic(partitions=3)
    found = eventually(lambda: admin.list_topics(timeout=10).topics.get(topic))
    assert sorted(found.partitions) == [0, 1, 2]
    for partition in found.partitions.values():
        assert (partition.leader, partition.replicas, partition.isrs) == (
            kafka_server.node_id,
            [kafka_server.node_id],
            [kafka_server.node_id],
        )


def test_describe_topics(admin, kafka_server, new_topic):
    topic = new_topic(partitions=2)
    description = result(admin.describe_topics(TopicCollection([topic])))
    assert (description.name, description.is_internal, len(description.partitions)) == (topic, False, 2)
    assert description.partitions[1].leader.id == kafka_server.node_id
    assert str(description.topic_id) != ""


def test_describing_an_unknown_topic_fails(admin, topic):
    futures = admin.describe_topics(TopicCollection([topic]))
    assert error_code(futures) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_describe_cluster(admin, kafka_server):
    cluster = admin.describe_cluster().result(30)
    assert cluster.controller.id == kafka_server.node_id
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [kafka_server.bootstrap]
    assert admin.list_topics(timeout=10).cluster_id == cluster.cluster_id


def test_validate_only_creates_nothing(admin, topic):
    result(admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True))
    assert topic not in admin.list_topics(timeout=10).topics


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"num_partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"replication_factor": 3}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"config": {"no.such": "x"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"topic": "not a name"}, KafkaError.TOPIC_EXCEPTION),
        ({"replica_assignment": [[99]]}, KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
def test_a_bad_topic_is_refused(admin, topic, shape, expected):
    if "replica_assignment" not in shape:
        shape = {"replication_factor": 1, **shape}
    assert (
        error_code(admin.create_topics([NewTopic(**{"topic": topic, "num_partitions": 1, **shape})]))
        == expected
    )


def test_creating_twice_fails(admin, new_topic):
    topic = new_topic()
    assert error_code(admin.create_topics([NewTopic(topic, 1, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS


def test_delete_topics(admin, new_topic):
    topic = new_topic()
    result(admin.delete_topics([topic]))
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics)
    assert error_code(admin.delete_topics([topic])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_create_partitions(admin, new_topic):
    topic = new_topic(partitions=2)
    result(admin.create_partitions([NewPartitions(topic, 4)]))
    eventually(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 4)
    assert error_code(admin.create_partitions([NewPartitions(topic, 4)])) == KafkaError.INVALID_PARTITIONS
