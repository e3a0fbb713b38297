"""kbroker import, verify and dump on what a real Apache Kafka 4.3.1 wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, TopicPartition

from compat.harness import server
from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import RealKafka

pytestmark = pytest.mark.java

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DELETED_BELOW = 7


def kbroker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kbroker", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def records(bootstrap: str, topic: str) -> list[object]:
    done = kbroker("consume", topic, "--json", "-b", bootstrap)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(lines, key=lambda line: (line["partition"], line["offset"]))


def fill(kafka: RealKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    topics = [
        NewTopic("orders", 2, 1, config={"segment.bytes": "1048576", "segment.index.bytes": "4096"}),
        NewTopic("payments", 1, 1),
    ]
    for future in admin.create_topics(topics).values():
        future.result(30)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec, "linger.ms": 5})
        for number in range(300):
            value = f"{codec} {number} ".encode() + os.urandom(2000)
            producer.produce(
                "orders", value, key=f"key-{number}", headers={"codec": codec}, partition=number % 2
            )
        assert producer.flush(60) == 0
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(30)
    for round_number in range(4):
        producer.begin_transaction()
        for number in range(5):
            producer.produce("payments", f"{round_number} {number}")
        producer.flush(30)
        (producer.abort_transaction if round_number % 2 else producer.commit_transaction)(30)
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    client.delete_records({TopicPartition("orders", 0): DELETED_BELOW})
    client.close()


@pytest.fixture(scope="module")
def kafka_data() -> Iterator[tuple[Path, dict[str, list[object]]]]:
    """The data directory that a Kafka left, and what consumers had read of it."""
    kafka = RealKafka()
    with kafka:
        fill(kafka)
        expected = {topic: records(kafka.bootstrap, topic) for topic in ("orders", "payments")}
        refused = kbroker("import", str(kafka.data), "--data", str(kafka.directory / "other"))
        assert refused.returncode == 1
        assert "stop it first" in refused.stderr
        assert kafka._process is not None
        server.stop_process(kafka._process)
        yield kafka.data, expected


@pytest.mark.parametrize("clean", [True, False])
def test_every_record_of_a_kafka_is_there_after_an_import(
    kafka_data: tuple[Path, dict[str, list[object]]], tmp_path: Path, clean: bool
) -> None:
    source, expected = kafka_data
    if not clean:
        source = shutil.copytree(source, tmp_path / "source")
        (source / ".kafka_cleanshutdown").unlink()
    data = tmp_path / "data"
    imported = kbroker("import", str(source), "--data", str(data), "-c", "retention.ms=-1", "--json")
    assert imported.returncode == 0, imported.stderr
    assert [row["topic"] for row in json.loads(imported.stdout)] == ["orders", "payments"]
    assert not list(data.glob("__*"))
    verified = kbroker("verify", str(data), "--records")
    assert verified.returncode == 0, verified.stdout
    with KBrokerProcess(data=data) as broker:
        for topic, lines in expected.items():
            assert records(broker.bootstrap, topic) == lines
        written = kbroker(
            "produce", "orders", "-p", "0", "-b", broker.bootstrap, "--file", __file__, "--whole", "--json"
        )
        assert json.loads(written.stdout)["offset"] == 750
        described = json.loads(
            kbroker("topic", "describe", "orders", "--json", "-b", broker.bootstrap).stdout
        )
        assert described[0]["configs"]["retention.ms"] == "-1"
        assert described[0]["partitions"][0]["log_start_offset"] == DELETED_BELOW
        broker.kill()
        broker.start()
        assert (
            records(broker.bootstrap, "orders")[: len(expected["orders"]) // 2 - 10]
            == (expected["orders"][: len(expected["orders"]) // 2 - 10])
        )
    again = kbroker("import", str(source), "--data", str(data))
    assert again.returncode == 1
    assert "already" in again.stderr


def test_what_cannot_be_imported_is_refused(
    kafka_data: tuple[Path, dict[str, list[object]]], tmp_path: Path
) -> None:
    source, _ = kafka_data
    data = str(tmp_path / "data")
    for path, message in (
        (source / "__transaction_state-0", "internal"),
        (source / "orders-1", "lacks partition 0"),
        (source / "nothing", "no directory"),
    ):
        refused = kbroker("import", str(path), "--data", data)
        assert refused.returncode == 1
        assert message in refused.stderr
    alone = kbroker("import", str(source / "orders-1"), "--data", data, "--allow-missing")
    assert alone.returncode == 0, alone.stderr
    assert not (tmp_path / "data" / "orders-0").exists()


def test_a_real_kafkas_directory_verifies_and_damage_is_found(
    kafka_data: tuple[Path, dict[str, list[object]]], tmp_path: Path
) -> None:
    source, _ = kafka_data
    verified = kbroker("verify", str(source), "--records", "--json")
    assert verified.returncode == 0, verified.stdout
    partitions = {row["partition"]: row for row in json.loads(verified.stdout)["partitions"]}
    assert partitions["orders-0"]["end_offset"] == 750
    assert partitions["orders-0"]["segments"] > 1
    assert not json.loads(verified.stdout)["problems"]
    damaged = shutil.copytree(source / "payments-0", tmp_path / "payments-0")
    log = next(damaged.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[80] ^= 0xFF
    log.write_bytes(content)
    found = kbroker("verify", str(damaged), "--json")
    assert found.returncode == 4
    assert [each["damage"] for each in json.loads(found.stdout)["problems"]] == ["records"]
    refused = kbroker("import", str(damaged), "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "kbroker verify" in refused.stderr


def test_segments_of_a_real_kafka_are_dumped(kafka_data: tuple[Path, dict[str, list[object]]]) -> None:
    source, _ = kafka_data
    log = str(source / "payments-0" / f"{0:020d}.log")
    batches = [json.loads(line) for line in kbroker("dump", log, "--json").stdout.splitlines()]
    assert sum(batch["records"] for batch in batches) == 24
    assert sum("control" in batch["flags"] for batch in batches) == 4
    rows = [json.loads(line) for line in kbroker("dump", log, "--records", "--json").stdout.splitlines()]
    assert [row["key"] for row in rows if row["key"]] == ["<commit>", "<abort>"] * 2
    assert "0 4" in kbroker("dump", log, "--records").stdout
    others = [
        str(path)
        for path in sorted((source / "payments-0").iterdir())
        if path.suffix in (".txnindex", ".snapshot")
    ]
    assert len(others) == 2
    assert kbroker("dump", *others).returncode == 0
