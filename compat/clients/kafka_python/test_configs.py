from __future__ import annotations

import pytest
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from compat.harness.waiting import eventually

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


def describe(admin, kind, name, **options):
    """Config name -> its entry."""
    resource = ConfigResource(kind, name)
    options = {"config_filter": "all", **options}
    return admin.describe_configs([resource], **options)[kind.name.lower()][name]


def alter(admin, kind, name, configs, **options):
    """The result that the client reports: "OK" or the error."""
    resource = ConfigResource(kind, name, configs)
    return admin.alter_configs([resource], raise_on_unknown=False, **options)[kind.name.lower()][name]


def value(admin, topic, name):
    return describe(admin, TOPIC, topic)[name]["value"]


def becomes(admin, topic, name, expected):
    eventually(lambda: value(admin, topic, name), lambda found: found == expected)


def test_a_topic_has_every_config_of_kafka_with_its_default(admin, new_topic):
    configs = describe(admin, TOPIC, new_topic())
    assert len(configs) == 33
    assert configs["retention.ms"]["value"] == "604800000"
    assert configs["cleanup.policy"]["value"] == "delete"
    assert configs["max.message.bytes"]["value"] == "1048588"
    assert configs["retention.ms"]["config_source"] == "DEFAULT_CONFIG"
    assert configs["retention.ms"]["config_type"] == "LONG"
    assert configs["cleanup.policy"]["config_type"] == "LIST"
    assert not any(config["read_only"] or config["is_sensitive"] for config in configs.values())


def test_a_config_given_at_creation_is_the_topics_own(admin, new_topic):
    configs = describe(admin, TOPIC, new_topic(retention_ms="1234"))
    assert configs["retention.ms"]["value"] == "1234"
    assert configs["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"


def test_synonyms_lead_from_the_topic_to_the_default(admin, new_topic):
    topic = new_topic(segment_bytes="20000000")
    synonyms = describe(admin, TOPIC, topic, include_synonyms=True)["segment.bytes"]["synonyms"]
    assert [(each["name"], each["value"], each["source"]) for each in synonyms] == [
        ("segment.bytes", "20000000", "DYNAMIC_TOPIC_CONFIG"),
        ("log.segment.bytes", "1073741824", "DEFAULT_CONFIG"),
    ]


def test_only_the_names_asked_for_are_described(admin, new_topic):
    topic = new_topic()
    resource = ConfigResource(TOPIC, topic, ["retention.ms", "cleanup.policy", "no.such"])
    described = admin.describe_configs([resource], config_filter="all")["topic"][topic]
    assert set(described) == {"retention.ms", "cleanup.policy"}


@pytest.mark.parametrize("incremental", [True, False], ids=["incremental", "legacy"])
def test_a_topic_config_can_be_altered(admin, new_topic, incremental):
    topic = new_topic(segment_ms="5000000")
    assert alter(admin, TOPIC, topic, {"retention.ms": "77777"}, incremental=incremental) == "OK"
    becomes(admin, topic, "retention.ms", "77777")
    assert value(admin, topic, "segment.ms") == "5000000"


def test_a_deleted_config_falls_back_to_its_default(admin, new_topic):
    topic = new_topic(retention_ms="1234")
    assert alter(admin, TOPIC, topic, {"retention.ms": (AlterConfigOp.DELETE, None)}) == "OK"
    becomes(admin, topic, "retention.ms", "604800000")


def test_list_configs_can_be_appended_and_subtracted(admin, new_topic):
    topic = new_topic()
    assert alter(admin, TOPIC, topic, {"cleanup.policy": (AlterConfigOp.APPEND, "compact")}) == "OK"
    becomes(admin, topic, "cleanup.policy", "delete,compact")
    assert alter(admin, TOPIC, topic, {"cleanup.policy": (AlterConfigOp.SUBTRACT, "delete")}) == "OK"
    becomes(admin, topic, "cleanup.policy", "compact")


def test_only_lists_can_be_appended_to(admin, new_topic):
    result = alter(admin, TOPIC, new_topic(), {"retention.ms": (AlterConfigOp.APPEND, "5")})
    assert "Error 40]" in result or "INVALID_CONFIG" in result.upper().replace(" ", "_"), result


@pytest.mark.parametrize("incremental", [True, False], ids=["incremental", "legacy"])
@pytest.mark.parametrize(
    "configs",
    [{"retention.ms": "soon"}, {"no.such.config": "1"}, {"cleanup.policy": "burn"}, {"segment.bytes": "-1"}],
    ids=lambda configs: "=".join(*configs.items()),
)
def test_a_bad_config_is_refused_and_nothing_changes(admin, new_topic, configs, incremental):
    topic = new_topic()
    before = describe(admin, TOPIC, topic)
    assert alter(admin, TOPIC, topic, {"retention.bytes": "5", **configs}, incremental=incremental) != "OK"
    assert describe(admin, TOPIC, topic) == before


def test_validate_only_alters_nothing(admin, new_topic):
    topic = new_topic()
    assert alter(admin, TOPIC, topic, {"retention.ms": "5"}, validate_only=True) == "OK"
    assert value(admin, topic, "retention.ms") == "604800000"


def test_configs_of_an_unknown_topic_cannot_be_altered(admin, topic):
    assert alter(admin, TOPIC, topic, {"retention.ms": "5"}, incremental=True) != "OK"


def test_reset_configs_removes_what_was_set(admin, new_topic):
    topic = new_topic(retention_ms="1234", segment_ms="5000000")
    admin.reset_configs([ConfigResource(TOPIC, topic, {})])
    eventually(lambda: describe(admin, TOPIC, topic, config_filter="modified") == {})


def test_broker_configs_are_described(admin, kafka_server):
    configs = describe(admin, BROKER, str(kafka_server.node_id))
    assert configs["node.id"]["value"] == str(kafka_server.node_id)
    assert configs["node.id"]["read_only"] is True
    assert configs["node.id"]["config_source"] == "STATIC_BROKER_CONFIG"
    assert configs["num.partitions"]["value"] == "1"
    assert configs["auto.create.topics.enable"]["value"] == "true"
    assert configs["message.max.bytes"]["value"] == "1048588"
    assert configs["log.retention.hours"]["value"] == "168"


def test_a_dynamic_broker_config_can_be_altered_and_deleted(admin, kafka_server):
    node = str(kafka_server.node_id)

    def threads():
        entry = describe(admin, BROKER, node)["log.cleaner.threads"]
        return entry["value"], entry["config_source"]

    assert alter(admin, BROKER, node, {"log.cleaner.threads": "2"}) == "OK"
    eventually(threads, lambda answer: answer == ("2", "DYNAMIC_BROKER_CONFIG"))
    assert alter(admin, BROKER, node, {"log.cleaner.threads": (AlterConfigOp.DELETE, None)}) == "OK"
    eventually(threads, lambda answer: answer == ("1", "DEFAULT_CONFIG"))


def test_a_read_only_broker_config_cannot_be_altered(admin, kafka_server):
    assert alter(admin, BROKER, str(kafka_server.node_id), {"node.id": "7"}) != "OK"
    assert alter(admin, BROKER, str(kafka_server.node_id), {"num.partitions": "many"}) != "OK"


def test_a_brokers_log_retention_is_every_topics_default(admin, kafka_server, new_topic):
    topic, node = new_topic(), str(kafka_server.node_id)

    def retention():
        entry = describe(admin, TOPIC, topic)["retention.ms"]
        return entry["value"], entry["config_source"]

    assert alter(admin, BROKER, node, {"log.retention.ms": "99999999"}) == "OK"
    try:
        eventually(retention, lambda answer: answer == ("99999999", "DYNAMIC_BROKER_CONFIG"))
    finally:
        assert alter(admin, BROKER, node, {"log.retention.ms": (AlterConfigOp.DELETE, None)}) == "OK"
    eventually(retention, lambda answer: answer == ("604800000", "DEFAULT_CONFIG"))


def test_topics_and_brokers_are_listed_as_config_resources(admin, kafka_server, new_topic):
    topic = new_topic()
    resources = admin.list_config_resources()
    assert topic in resources["topic"]
    assert resources["broker"] == [str(kafka_server.node_id)]
