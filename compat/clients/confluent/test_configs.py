from __future__ import annotations

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType

from compat.harness.waiting import eventually

SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


def result(futures):
    (future,) = futures.values()
    return future.result(30)


def topic_configs(admin, topic):
    return result(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))


def becomes(admin, topic, name, expected):
    eventually(lambda: topic_configs(admin, topic)[name].value, lambda found: found == expected)


def incremental(admin, topic, name, value, operation):
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    return result(admin.incremental_alter_configs([resource]))


def test_topic_configs_are_described_with_their_sources(admin, new_topic):
    configs = topic_configs(admin, new_topic(retention_ms="1234"))
    assert (configs["retention.ms"].value, configs["retention.ms"].source) == (
        "1234",
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    )
    assert configs["segment.bytes"].is_default
    assert not configs["segment.bytes"].is_read_only


def test_configs_of_an_unknown_topic_are_refused(admin, topic):
    with pytest.raises(KafkaException) as caught:
        topic_configs(admin, topic)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_incremental_alterations(admin, new_topic):
    topic = new_topic()
    incremental(admin, topic, "retention.ms", "5000", SET)
    becomes(admin, topic, "retention.ms", "5000")
    incremental(admin, topic, "retention.ms", None, DELETE)
    becomes(admin, topic, "retention.ms", "604800000")
    incremental(admin, topic, "cleanup.policy", "compact", APPEND)
    becomes(admin, topic, "cleanup.policy", "delete,compact")
    incremental(admin, topic, "cleanup.policy", "delete", SUBTRACT)
    becomes(admin, topic, "cleanup.policy", "compact")


def test_the_legacy_call_replaces_all_configs(admin, new_topic):
    topic = new_topic(retention_ms="1234")
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "60000"})
    with pytest.deprecated_call():
        result(admin.alter_configs([resource]))
    becomes(admin, topic, "segment.ms", "60000")
    becomes(admin, topic, "retention.ms", "604800000")


@pytest.mark.parametrize(("name", "value"), [("retention.ms", "soon"), ("no.such.config", "1")])
def test_a_bad_alteration_is_refused(admin, new_topic, name, value):
    with pytest.raises(KafkaException) as caught:
        incremental(admin, new_topic(), name, value, SET)
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_broker_configs_are_described(admin, kafka_server):
    resource = ConfigResource(ResourceType.BROKER, str(kafka_server.node_id))
    configs = result(admin.describe_configs([resource]))
    assert configs["node.id"].value == str(kafka_server.node_id)
    assert configs["node.id"].is_read_only
    assert configs["num.partitions"].value == "1"


def test_electing_the_only_replica_is_not_needed(admin, new_topic):
    partition = TopicPartition(new_topic(), 0)
    outcome = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(30)
    assert outcome[partition].code() == KafkaError.ELECTION_NOT_NEEDED
