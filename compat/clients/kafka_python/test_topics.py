from __future__ import annotations

import uuid

import pytest
from kafka import errors

from compat.harness.waiting import eventually


def partition_count(admin, topic):
    (description,) = admin.describe_topics([topic])
    return len(description["partitions"])


def test_a_created_topic_is_listed_and_described(admin, kafka_server, topic):
    admin.create_topics({topic: {"num_partitions": 3, "replication_factor": 1}}, wait_for_metadata=True)
    assert topic in admin.list_topics()
    (description,) = admin.describe_topics([topic])
    assert description["error_code"] == 0
    assert description["is_internal"] is False
    assert [partition["partition_index"] for partition in description["partitions"]] == [0, 1, 2]
    for partition in description["partitions"]:
        assert partition["leader_id"] == kafka_server.node_id
        assert partition["replica_nodes"] == [kafka_server.node_id]
        assert partition["isr_nodes"] == [kafka_server.node_id]
        assert partition["leader_epoch"] == 0


def test_describe_by_topic_id_names_the_topic(admin, new_topic):
    topic = new_topic()
    (by_name,) = admin.describe_topics([topic])
    (by_id,) = admin.describe_topics([uuid.UUID(by_name["topic_id"])])
    assert by_id["name"] == topic


def test_create_topics_answers_with_the_effective_shape(admin, topic):
    response = admin.create_topics({topic: {"num_partitions": 2, "configs": {"retention.ms": "1000"}}})
    (created,) = response["topics"]
    assert (created["num_partitions"], created["replication_factor"]) == (2, 1)
    assert created["configs"]["retention.ms"]["value"] == "1000"
    assert created["configs"]["cleanup.policy"]["value"] == "delete"


def test_default_partition_count_and_replication_factor(admin, topic):
    admin.create_topics([topic], wait_for_metadata=True)
    assert partition_count(admin, topic) == 1


def test_validate_only_creates_nothing(admin, topic):
    response = admin.create_topics({topic: {"num_partitions": 2}}, validate_only=True)
    assert response["topics"][0]["error_code"] == 0
    assert topic not in admin.list_topics()


def test_manual_assignment_is_followed(admin, kafka_server, topic):
    assignments = {0: [kafka_server.node_id], 1: [kafka_server.node_id]}
    admin.create_topics({topic: {"assignments": assignments}}, wait_for_metadata=True)
    assert partition_count(admin, topic) == 2


def test_creating_an_existing_topic_fails(admin, new_topic):
    topic = new_topic()
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics([topic])


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "no spaces", "no/slash", "no:colon", "übung"])
def test_an_invalid_name_is_refused(admin, name):
    with pytest.raises(errors.InvalidTopicError):
        admin.create_topics([name])


def test_names_that_differ_in_dot_and_underscore_collide(admin, topic):
    admin.create_topics([f"{topic}.x"])
    with pytest.raises(errors.InvalidTopicError):
        admin.create_topics([f"{topic}_x"])


@pytest.mark.parametrize("name_length", [1, 249])
def test_the_shortest_and_the_longest_name_are_accepted(admin, topic, name_length):
    name = topic[-1] if name_length == 1 else topic.ljust(name_length, "x")
    if name in admin.list_topics():
        admin.delete_topics([name])
        eventually(lambda: name not in admin.list_topics())
    admin.create_topics([name], wait_for_metadata=True)
    assert name in admin.list_topics()


@pytest.mark.parametrize("count", [0, -2])
def test_a_bad_partition_count_is_refused(admin, topic, count):
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_topics({topic: {"num_partitions": count}})


@pytest.mark.parametrize("factor", [0, 2, -2])
def test_a_bad_replication_factor_is_refused(admin, topic, factor):
    with pytest.raises(errors.InvalidReplicationFactorError):
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": factor}})


def test_an_assignment_to_an_unknown_broker_is_refused(admin, topic):
    with pytest.raises(errors.InvalidReplicationAssignmentError):
        admin.create_topics({topic: {"assignments": {0: [99]}}})


def test_assignments_and_a_partition_count_exclude_each_other(admin, kafka_server, topic):
    with pytest.raises(errors.InvalidRequestError):
        admin.create_topics({topic: {"num_partitions": 1, "assignments": {0: [kafka_server.node_id]}}})


@pytest.mark.parametrize(
    "configs",
    [
        {"no.such.config": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": "-2"},
        {"cleanup.policy": "burn"},
        {"compression.type": "rar"},
        {"message.timestamp.type": "Yesterday"},
        {"min.cleanable.dirty.ratio": "2"},
        {"segment.bytes": "1"},
        {"preallocate": "perhaps"},
    ],
    ids=lambda configs: "=".join(*configs.items()),
)
def test_an_unknown_config_or_a_bad_value_is_refused(admin, topic, configs):
    with pytest.raises(errors.InvalidConfigurationError):
        admin.create_topics({topic: {"num_partitions": 1, "configs": configs}})
    assert topic not in admin.list_topics()


def test_a_deleted_topic_is_gone_and_can_be_created_again_with_a_new_id(admin, new_topic):
    topic = new_topic()
    (before,) = admin.describe_topics([topic])
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())
    admin.create_topics([topic], wait_for_metadata=True)
    (after,) = admin.describe_topics([topic])
    assert after["topic_id"] != before["topic_id"]


def test_deleting_an_unknown_topic_fails(admin, topic):
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_describing_an_unknown_topic_tells_so(admin, topic):
    (description,) = admin.describe_topics([topic])
    assert description["error_code"] == errors.UnknownTopicOrPartitionError.errno


def test_partitions_can_be_added(admin, new_topic):
    topic = new_topic(partitions=2)
    admin.create_partitions({topic: 5})
    eventually(lambda: partition_count(admin, topic) == 5)


def test_partitions_are_not_added_when_only_validating(admin, new_topic):
    topic = new_topic(partitions=2)
    admin.create_partitions({topic: 5}, validate_only=True)
    assert partition_count(admin, topic) == 2


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_partition_count_cannot_stay_or_shrink(admin, new_topic, count):
    topic = new_topic(partitions=2)
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({topic: count})


def test_partitions_of_an_unknown_topic_cannot_be_added(admin, topic):
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.create_partitions({topic: 2})


def test_one_bad_topic_of_a_request_does_not_stop_the_others(admin, unique):
    good, bad = unique("good"), "bad topic"
    response = admin.create_topics([good, bad], raise_errors=False)
    codes = {each["name"]: each["error_code"] for each in response["topics"]}
    assert codes == {good: 0, bad: errors.InvalidTopicError.errno}


def test_a_topic_can_have_a_hundred_partitions(admin, new_topic):
    assert partition_count(admin, new_topic(partitions=100)) == 100
