"""Java's KafkaShareConsumer in Kafka's own tools: console, performance test, verifiable consumer."""

from __future__ import annotations

import json

import pytest

from compat.clients.confluent.members import produce_one_batch

from .conftest import PARTITIONS, RECORDS

VALUES = sorted(str(number) for number in range(RECORDS))


@pytest.fixture
def sharers(run, group):
    """The name of a share group that begins at the start of its topics."""
    run(
        *("kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.auto.offset.reset=earliest,share.record.lock.duration.ms=15000"),
    )
    return group


@pytest.fixture
def consume(run, sharers):
    """kafka-console-share-consumer; the values it printed"""

    def consume(topic, *options, most=RECORDS, timeout_ms=20_000):
        result = run(
            *("kafka-console-share-consumer", "--topic", topic, "--group", sharers),
            *("--max-messages", str(most), "--timeout-ms", str(timeout_ms), *options),
        )
        return result.stdout.split()

    return consume


def lag(run, group):
    """By partition, as kafka-share-groups tells."""
    lines = run("kafka-share-groups", "--describe", "--group", group, "--offsets").stdout.splitlines()
    rows = [line.split() for line in lines if line.startswith(group)]
    return {int(row[2]): row[4] for row in rows}


def test_all_records_are_consumed_once(run, records, consume, sharers):
    assert sorted(consume(records)) == VALUES
    assert consume(records, most=1, timeout_ms=6000) == []
    assert lag(run, sharers) == dict.fromkeys(range(PARTITIONS), "0")


def test_a_batch_of_very_many_records_is_consumed_once(kafka_server, run, new_topic, consume, sharers):
    """Apache Kafka gives it whole, kbroker in parts."""
    topic = new_topic()
    produce_one_batch(kafka_server.bootstrap, topic, 25_000)
    assert consume(topic, most=25_000) == [str(number) for number in range(25_000)]
    assert lag(run, sharers) == {0: "0"}


def test_rejected_records_do_not_come_back(records, consume):
    assert sorted(consume(records, "--reject")) == VALUES
    assert consume(records, most=1, timeout_ms=6000) == []


def test_released_records_come_back(records, consume):
    assert sorted(consume(records, "--release")) == VALUES
    assert sorted(consume(records)) == VALUES


def test_delivery_counts_are_told(records, consume):
    consume(records, "--release")
    told = consume(records, "--formatter-property", "print.delivery=true")
    assert sorted(told) == sorted([*VALUES, *["Delivery:2"] * RECORDS])


@pytest.mark.parametrize("threads", [1, 3])
def test_the_performance_tool_reads_everything(run, records, sharers, threads):
    result = run(
        *("kafka-share-consumer-perf-test", "--topic", records, "--group", sharers),
        *("--num-records", str(RECORDS), "--threads", str(threads), "--timeout", "20000"),
    )
    header, values = (line.split(", ") for line in result.stdout.splitlines()[-2:])
    assert dict(zip(header, values, strict=True))["data.consumed.in.nMsg"] == str(RECORDS)


@pytest.mark.parametrize("mode", ["sync", "async", "auto"])
def test_the_verifiable_consumer_acknowledges_what_it_reads(run, records, sharers, mode):
    result = run(
        *("kafka-verifiable-share-consumer", "--topic", records, "--group-id", sharers),
        *("--max-messages", str(RECORDS), "--acknowledgement-mode", mode),
    )
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == RECORDS
    assert sum(event["count"] for event in events if event["name"] == "offsets_acknowledged") == RECORDS
    assert all(event["success"] for event in events if event["name"] == "offsets_acknowledged")
    assert events[-1]["name"] == "shutdown_complete"
