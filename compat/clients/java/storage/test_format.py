"""The files are Kafka's: its own tool reads ours, and we read its."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat.harness import server
from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import RealKafka
from compat.harness.tools import KafkaTools
from kbroker.protocol.records import iter_batches, iter_records
from kbroker.storage.config import LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files
from kbroker.storage.interface import Slice
from kbroker.storage.partition_metadata import read_partition_metadata
from kbroker.storage.worker import InlineWorker

from .dumping import accepted, dumped_records

pytestmark = pytest.mark.java

TOPIC = "format"
RECORDS_PER_CODEC = 1500
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill(bootstrap: str) -> int:
    """Records in every codec, from plain, idempotent and transactional producers; returns how many."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"segment.bytes": "1048576", "index.interval.bytes": "1000", "retention.ms": "-1"}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(30)
    for codec in CODECS:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": codec != "none"}
        )
        for number in range(RECORDS_PER_CODEC):
            producer.produce(
                TOPIC, key=b"%d" % number, value=f"{codec} {number} ".encode() * 200, headers=[("h", b"1")]
            )
            producer.poll(0)
        assert producer.flush(60) == 0
    for commit in (True, False):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"format-{commit}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(100):
            producer.produce(TOPIC, value=f"transaction {number}".encode())
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    return len(CODECS) * RECORDS_PER_CODEC + 200


@pytest.mark.parametrize("end", ["stopped", "killed and recovered"])
def test_kafkas_own_tool_reads_every_file_kbroker_writes(kafka_tools: KafkaTools, end: str) -> None:
    with KBrokerProcess() as broker:
        count = fill(broker.bootstrap)
        if end == "killed and recovered":
            broker.kill()
            broker.start()
        assert broker.stop() == 0
        directory = broker.data / f"{TOPIC}-0"
        segments = sorted(directory.glob("*.log"))
        assert len(segments) > 1
        assert dumped_records(kafka_tools, segments) == count
        for suffix in (".index", ".timeindex"):
            files = sorted(directory.glob(f"*{suffix}"))
            assert len(files) == len(segments)
            accepted(kafka_tools, files, "--index-sanity-check")
            accepted(kafka_tools, files, "--verify-index-only")
        assert "producerId" in accepted(kafka_tools, sorted(directory.glob("*.snapshot")))
        assert "producerId" in accepted(kafka_tools, sorted(directory.glob("*.txnindex")))


def test_a_partition_that_kafka_wrote_is_read_record_by_record(tmp_path: Path) -> None:
    kafka = RealKafka({"log.retention.ms": "-1"})
    with kafka:
        count = fill(kafka.bootstrap)
        assert kafka._process is not None
        server.stop_process(kafka._process)
        kafka._process = None
        shutil.copytree(kafka.data, tmp_path / "data")
    topic_id = read_partition_metadata(Files(), str(tmp_path / "data" / f"{TOPIC}-0"))
    assert topic_id
    directory = LogDirectory.open(str(tmp_path / "data"), worker=InlineWorker(), now_ms=0)
    try:
        log = directory.log(topic_id, TOPIC, 0, LogConfig(retention_ms=-1), 1)
        values, markers, offset = [], 0, 0
        while offset < log.high_watermark:
            part = log.read(offset, 1 << 20)
            assert isinstance(part, Slice)
            view = memoryview(b"".join(part.buffers))
            for position, header in iter_batches(view):
                batch = view[position : position + header.size_bytes]
                if header.is_control:
                    markers += 1
                else:
                    values += [record.value for record in iter_records(batch)]
            offset = part.next_offset
        assert len(values) == count
        assert markers == 2
        assert log.last_stable_offset == log.high_watermark == log.log_end_offset
        for codec in CODECS:
            assert f"{codec} 7 ".encode() * 200 in values
        committed = log.read(log.log_end_offset - 50, 1 << 20, committed=True)
        assert isinstance(committed, Slice)
        assert len(committed.aborted) == 1
    finally:
        directory.close()
