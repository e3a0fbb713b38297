"""kafka-topics"""

from __future__ import annotations

import re

import pytest

from compat.harness.waiting import eventually


def test_create_prints_its_success(run, topic):
    result = run(
        "kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1"
    )
    assert result.stdout == f"Created topic {topic}.\n"


def test_describe_shows_leaders_replicas_and_overrides(run, kafka_server, new_topic):
    topic = new_topic(partitions=2, retention_ms="1000")
    head, *partitions = run("kafka-topics", "--describe", "--topic", topic).stdout.splitlines()
    fields = dict(field.split(": ", 1) for field in head.split("\t"))
    assert fields["Topic"] == topic
    assert re.fullmatch(r"[\w-]{22}", fields["TopicId"])
    assert (fields["PartitionCount"], fields["ReplicationFactor"]) == ("2", "1")
    # A new Kafka cluster sets min.insync.replicas as a cluster-wide default, which shows as an override.
    assert fields["Configs"].removeprefix("min.insync.replicas=1,") == "retention.ms=1000"
    node = kafka_server.node_id
    assert partitions == [
        f"\tTopic: {topic}\tPartition: {number}\tLeader: {node}\tReplicas: {node}\tIsr: {node}"
        "\tElr: \tLastKnownElr: "
        for number in range(2)
    ]


def test_list_names_the_topic(run, new_topic):
    topic = new_topic()
    assert topic in run("kafka-topics", "--list").stdout.splitlines()
    assert topic in run("kafka-topics", "--list", "--exclude-internal").stdout.splitlines()


def test_describe_of_all_topics_includes_it(run, new_topic):
    topic = new_topic()
    assert f"Topic: {topic}\t" in run("kafka-topics", "--describe").stdout


def test_describe_by_topic_id(run, new_topic):
    topic = new_topic()
    topic_id = re.search(r"TopicId: (\S+)", run("kafka-topics", "--describe", "--topic", topic).stdout)[1]
    assert f"Topic: {topic}\t" in run("kafka-topics", "--describe", "--topic-id", topic_id).stdout


@pytest.mark.parametrize(
    "problem",
    [
        "under-replicated-partitions",
        "unavailable-partitions",
        "under-min-isr-partitions",
        "at-min-isr-partitions",
    ],
)
def test_a_healthy_topic_has_no_problem_partitions(run, new_topic, problem):
    topic = new_topic()
    described = run("kafka-topics", "--describe", "--topic", topic, f"--{problem}").stdout
    assert (topic in described) is (problem == "at-min-isr-partitions")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--partitions", "0"], "partitions"),
        (["--replication-factor", "2"], "replication factor"),
        (["--config", "retention.ms=soon"], "retention.ms"),
        (["--config", "no.such.config=1"], "no.such.config"),
        (["--replica-assignment", "9"], "9"),
    ],
    ids=" ".join,
)
def test_a_bad_topic_is_refused_with_a_reason(run, topic, options, message):
    result = run("kafka-topics", "--create", "--topic", topic, *options, ok=False)
    assert message in result.output.lower()


def test_a_bad_name_is_refused(run):
    result = run("kafka-topics", "--create", "--topic", "bad name", ok=False)
    assert "InvalidTopicException" in result.stderr


def test_creating_twice_fails_unless_told_otherwise(run, new_topic):
    topic = new_topic()
    assert "TopicExistsException" in run("kafka-topics", "--create", "--topic", topic, ok=False).stderr
    run("kafka-topics", "--create", "--topic", topic, "--if-not-exists")


def test_partitions_can_be_added_and_not_taken_away(run, new_topic):
    topic = new_topic()
    run("kafka-topics", "--alter", "--topic", topic, "--partitions", "3")
    eventually(lambda: "PartitionCount: 3" in run("kafka-topics", "--describe", "--topic", topic).stdout)
    failed = run("kafka-topics", "--alter", "--topic", topic, "--partitions", "2", ok=False)
    assert "InvalidPartitionsException" in failed.stderr


def test_a_manual_assignment_is_followed(run, kafka_server, topic):
    node = str(kafka_server.node_id)
    run("kafka-topics", "--create", "--topic", topic, "--replica-assignment", f"{node},{node},{node}")
    assert "PartitionCount: 3" in run("kafka-topics", "--describe", "--topic", topic).stdout


def test_a_deleted_topic_is_gone(run, new_topic):
    topic = new_topic()
    run("kafka-topics", "--delete", "--topic", topic)
    eventually(lambda: topic not in run("kafka-topics", "--list").stdout.splitlines())
    assert "does not exist" in run("kafka-topics", "--delete", "--topic", topic, ok=False).output
    run("kafka-topics", "--delete", "--topic", topic, "--if-exists")


def test_a_hundred_partitions_are_described(run, new_topic):
    topic = new_topic(partitions=100)
    assert run("kafka-topics", "--describe", "--topic", topic).stdout.count("\tPartition: ") == 100
