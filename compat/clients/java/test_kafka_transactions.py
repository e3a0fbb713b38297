"""kafka-transactions in every operation; transactions with kafka-producer-perf-test and the console tools."""

from __future__ import annotations

import re
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat.harness.batches import TRANSACTIONAL, Record, batch
from compat.harness.brokers import Server
from compat.harness.raw_producer import RawProducer, find_coordinators
from compat.harness.side import Side
from compat.harness.tools import KafkaTools, ToolResult
from compat.harness.waiting import eventually

from .conftest import Run


@pytest.fixture
def producer(kafka_server: Server, topic: str, unique) -> RawProducer:
    """A transactional producer; its topic exists."""
    side = Side(kafka_server)
    find_coordinators(side)
    admin = AdminClient({"bootstrap.servers": kafka_server.bootstrap})
    (created,) = admin.create_topics([NewTopic(topic, 2, 1)]).values()
    created.result(30)
    eventually(lambda: side.is_served(topic, 2))
    producer = RawProducer(side, unique("txn"))
    producer.init()
    return producer


def rows(result: ToolResult) -> list[dict[str, str]]:
    """The table that kafka-transactions prints."""
    lines = [
        [cell.strip() for cell in line.rstrip("\n").split("\t")]
        for line in result.stdout.splitlines()
        if "\t" in line
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]] if lines else []


def test_list_and_its_filters(run: Run, producer: RawProducer, topic: str) -> None:
    def listed(*arguments: str) -> list[dict[str, str]]:
        return [
            row
            for row in rows(run("kafka-transactions", "list", *arguments))
            if row["TransactionalId"] == producer.transactional_id
        ]

    (row,) = listed()
    assert row["TransactionState"] == "Empty"
    assert int(row["ProducerId"]) == producer.producer_id
    producer.add(topic)
    (row,) = listed("--duration-filter", "0")
    assert row["TransactionState"] == "Ongoing"
    assert listed("--duration-filter", "10000000") == []
    pattern = producer.transactional_id.replace("txn", "t.n")
    (row,) = listed("--transactional-id-pattern", pattern)
    assert listed("--transactional-id-pattern", "nobody.*") == []
    producer.end()
    assert listed()[0]["TransactionState"] == "CompleteCommit"


def test_describe(run: Run, producer: RawProducer, topic: str) -> None:
    producer.add(topic, 0, 1)
    (row,) = rows(run("kafka-transactions", "describe", "--transactional-id", producer.transactional_id))
    assert row["TransactionalId"] == producer.transactional_id
    assert (int(row["ProducerId"]), int(row["ProducerEpoch"])) == (producer.producer_id, 0)
    assert row["TransactionState"] == "Ongoing"
    assert row["TransactionTimeoutMs"] == "60000"
    assert set(row["TopicPartitions"].split(",")) == {f"{topic}-0", f"{topic}-1"}


def test_describe_producers(run: Run, producer: RawProducer, topic: str) -> None:
    producer.produce(topic, version=12)
    arguments = ("describe-producers", "--topic", topic, "--partition", "0")
    (row,) = rows(run("kafka-transactions", *arguments))
    assert (int(row["ProducerId"]), int(row["ProducerEpoch"])) == (producer.producer_id, 0)
    assert (row["LastSequence"], row["CurrentTransactionStartOffset"]) == ("0", "0")
    producer.end(version=5)
    (row,) = rows(run("kafka-transactions", *arguments))
    assert row["CurrentTransactionStartOffset"] == "None"


def test_force_terminate(run: Run, producer: RawProducer, topic: str) -> None:
    producer.produce(topic, version=12)
    run("kafka-transactions", "forceTerminateTransaction", "--transactionalId", producer.transactional_id)
    producer.settle()
    assert producer.describe()["TransactionState"] in ("CompleteAbort", "Empty")
    assert producer.produce(topic, version=12) == 47  # INVALID_PRODUCER_EPOCH


def write_old_batch(producer: RawProducer, topic: str, sequence: int = 0) -> None:
    """A transactional batch whose timestamp is long past."""
    records = batch(
        (Record(b"old"),),
        timestamp_ms=int(time.time() * 1000) - 3_600_000,
        attributes=TRANSACTIONAL,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
    )
    code, _ = producer.produce_batches({0: records}, topic, 9, producer.transactional_id)
    assert code == 0


def test_abort_a_transaction_of_one_partition(run: Run, producer: RawProducer, topic: str) -> None:
    """By its start offset: what a hanging transaction is ended by."""
    producer.add(topic, 0)
    write_old_batch(producer, topic)
    run("kafka-transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    producer.note_log(topic)
    _, (((_, _, _, _, start_offset),), offsets, _) = ("log", producer.notes[-1][1:])
    assert start_offset == -1
    assert offsets[0] == offsets[1] == 2


def test_abort_as_brokers_before_kip_664_need_it(run: Run, producer: RawProducer, topic: str) -> None:
    producer.add(topic, 0)
    write_old_batch(producer, topic)
    run(
        *("kafka-transactions", "abort", "--topic", topic, "--partition", "0"),
        *("--producer-id", str(producer.producer_id)),
        *("--producer-epoch", str(producer.epoch), "--coordinator-epoch", "0"),
    )
    producer.note_log(topic)
    assert producer.notes[-1][2][1] == 2


def test_find_hanging(run: Run, producer: RawProducer, topic: str) -> None:
    """A transaction hangs if its log has it open and the coordinator does not."""

    def hanging() -> list[dict[str, str]]:
        return rows(
            run("kafka-transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "15")
        )

    def verify(enable: str) -> None:
        alter = ("--entity-type", "brokers", "--entity-default", "--alter")
        run("kafka-configs", *alter, "--add-config", f"transaction.partition.verification.enable={enable}")

    producer.add(topic, 0)
    write_old_batch(producer, topic)
    assert hanging() == []  # open, and the coordinator knows
    producer.end()
    assert hanging() == []
    verify("false")
    try:
        eventually(lambda: producer.produce(topic, sequence=1), lambda code: code == 0)
        write_old_batch(producer, topic, sequence=2)
    finally:
        verify("true")
    (row,) = hanging()
    assert (row["Topic"], row["Partition"], row["StartOffset"]) == (topic, "0", "2")
    run("kafka-transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "2")
    assert hanging() == []


def test_perf_test_with_transactions(
    run: Run, kafka_server: Server, kafka_tools: KafkaTools, topic: str, unique
) -> None:
    run("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    result = kafka_tools.run(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "500", "--record-size", "50", "--throughput", "-1"),
        *("--transaction-duration-ms", "20", "--transactional-id", unique("perf")),
        *("--command-property", f"bootstrap.servers={kafka_server.bootstrap}"),
    )
    assert result.exit_code == 0, result
    assert re.search(r"500 records sent", result.stdout), result
    read = run(
        *("kafka-console-consumer", "--topic", topic, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", "500", "--timeout-ms", "30000"),
    )
    assert len(read.stdout.split()) == 500


def test_the_console_consumer_reads_by_isolation_level(run: Run, producer: RawProducer, topic: str) -> None:
    def read(isolation: str, count: int) -> list[str]:
        return run(
            *("kafka-console-consumer", "--topic", topic, "--partition", "0", "--offset", "earliest"),
            *("--isolation-level", isolation, "--max-messages", str(count), "--timeout-ms", "30000"),
        ).stdout.split()

    producer.produce(topic, b"aborted", version=12)
    producer.end(commit=False, version=5)
    producer.produce(topic, b"committed", version=12)
    producer.end(version=5)
    producer.produce(topic, b"open", version=12)
    assert read("read_committed", 1) == ["committed"]
    assert read("read_uncommitted", 3) == ["aborted", "committed", "open"]
