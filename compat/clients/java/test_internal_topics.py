"""Kafka's internal topics through its own tools: the console consumer with their formatters, and lists."""

from __future__ import annotations

import json

import pytest

from compat.clients.confluent.members import produce

FORMATTERS = "org.apache.kafka.tools.consumer"
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def read(run, topic, formatter, *options):
    """What the console consumer prints of all there is."""
    result = run(
        "kafka-console-consumer", "--topic", topic, "--from-beginning", "--timeout-ms", "8000",
        "--formatter", f"{FORMATTERS}.{formatter}", *options,
    )  # fmt: skip
    decoder = json.JSONDecoder()
    text, records = result.stdout.strip(), []
    while text:
        record, end = decoder.raw_decode(text)
        records.append(record)
        text = text[end:].lstrip()
    return records


def consume(run, topic, group):
    run(
        "kafka-console-consumer",
        "--topic",
        topic,
        "--group",
        group,
        "--from-beginning",
        "--max-messages",
        "3",
    )


@pytest.fixture
def group(kafka_server, run, new_topic, topic, unique):
    """That has read the topic."""
    group = unique("group")
    new_topic()
    produce(kafka_server.bootstrap, topic, 1, [b"1", b"2", b"3"])
    consume(run, topic, group)
    return group


def test_offsets_and_groups_are_printed(run, topic, group):
    consumer_protocol = ("--command-property", "group.protocol=consumer")
    records = read(run, OFFSETS, "OffsetsMessageFormatter", *consumer_protocol)
    values = [
        record["value"] for record in records
        if record["key"]["data"] == {"group": group, "topic": topic, "partition": 0} and record["value"]
    ]  # fmt: skip
    assert (values[-1]["version"], values[-1]["data"]["offset"]) == (4, 3)
    records = read(run, OFFSETS, "GroupMetadataMessageFormatter")
    values = [record["value"] for record in records if record["key"]["data"] == {"group": group}]
    assert (values[-1]["version"], values[-1]["data"]["protocolType"]) == (3, "consumer")
    assert values[-1]["data"]["members"] == []


def test_transactions_are_printed(run, topic, group, transactional_id_that_committed):
    records = read(run, TRANSACTIONS, "TransactionLogMessageFormatter")
    values = [
        record["value"] for record in records
        if record["key"]["data"] == {"transactionalId": transactional_id_that_committed}
    ]  # fmt: skip
    complete_commit = 4
    assert values[-1]["data"]["transactionStatus"] == complete_commit


@pytest.fixture
def transactional_id_that_committed(kafka_server, topic, group, unique):
    from confluent_kafka import Producer

    transactional_id = unique("id")
    producer = Producer({"bootstrap.servers": kafka_server.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"4")
    producer.commit_transaction(30)
    return transactional_id


def test_a_pattern_leaves_internal_topics_out_unless_it_is_told_to_take_them(run, group):
    """The client decides, by what Metadata says."""

    def count(exclude):
        result = run(
            "kafka-console-consumer", "--include", "__consumer_offset.*", "--from-beginning",
            "--timeout-ms", "8000", "--command-property", f"exclude.internal.topics={exclude}",
        )  # fmt: skip
        return int(result.stderr.split("Processed a total of ")[1].split()[0])

    assert count("true") == 0
    assert count("false") > 0


def test_the_tools_describe_it(run, group):
    described = run("kafka-topics", "--describe", "--topic", OFFSETS).stdout
    assert f"Topic: {OFFSETS}" in described
    assert "cleanup.policy=compact" in described
    assert OFFSETS in run("kafka-topics", "--list").stdout.split()
    assert OFFSETS not in run("kafka-topics", "--list", "--exclude-internal").stdout.split()
    offsets = run("kafka-get-offsets", "--topic", OFFSETS).stdout.split()
    assert all(line.startswith(f"{OFFSETS}:") for line in offsets)
    assert sum(1 for line in offsets if not line.endswith(":0")) > 0
