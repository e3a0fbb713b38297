"""kafka-console-producer, kafka-console-consumer, kafka-get-offsets, kafka-delete-records,
kafka-producer-perf-test, kafka-verifiable-producer"""

from __future__ import annotations

import json
import re
import time

import pytest

PRINT_ALL = [
    option
    for name in ("timestamp", "partition", "offset", "headers", "key", "value")
    for option in ("--formatter-property", f"print.{name}=true")
]


def consume(run, topic, count, *options, partition=0, offset="earliest"):
    """The lines of `count` records of one partition."""
    result = run(
        "kafka-console-consumer", "--topic", topic, "--partition", str(partition), "--offset", str(offset),
        "--max-messages", str(count), "--timeout-ms", "20000", *options,
    )  # fmt: skip
    lines = result.stdout.splitlines()
    assert len(lines) == count, result
    return lines


def offsets(run, topic, when="latest"):
    """Partition -> offset, as kafka-get-offsets prints them."""
    lines = run("kafka-get-offsets", "--topic", topic, "--time", str(when)).stdout.splitlines()
    return {int(partition): int(offset) for _, partition, offset in (line.rsplit(":", 2) for line in lines)}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer_with_every_codec(run, new_topic, codec):
    topic = new_topic()
    lines = [f"line {number} {'x' * 50}" for number in range(200)]
    run("kafka-console-producer", "--topic", topic, "--compression-codec", codec, stdin="\n".join(lines))
    assert consume(run, topic, 200) == lines


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_java_reads_what_the_topic_recompressed(run, new_topic, codec):
    topic = new_topic(compression_type=codec)
    lines = [f"line {number} {'x' * 50}" for number in range(50)]
    run("kafka-console-producer", "--topic", topic, "--compression-codec", "lz4", stdin="\n".join(lines))
    assert consume(run, topic, 50) == lines


def test_keys_headers_nulls_and_timestamps(run, new_topic):
    topic = new_topic()
    properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]
    options = [option for each in properties for option in ("--reader-property", each)]
    before_ms = int(time.time() * 1000)
    run(
        "kafka-console-producer", "--topic", topic, *options,
        stdin="h1:v1,h2:v2\tkey\tvalue\nNULL\tNULL\tno key\nh:x\ttombstone\tNULL\n",
    )  # fmt: skip
    records = [line.split("\t") for line in consume(run, topic, 3, *PRINT_ALL)]
    assert [record[1:] for record in records] == [
        ["Partition:0", "Offset:0", "h1:v1,h2:v2", "key", "value"],
        ["Partition:0", "Offset:1", "NO_HEADERS", "null", "no key"],
        ["Partition:0", "Offset:2", "h:x", "tombstone", "null"],
    ]
    assert before_ms <= int(records[0][0].removeprefix("CreateTime:")) <= int(time.time() * 1000)


def test_log_append_time(run, new_topic):
    topic = new_topic(message_timestamp_type="LogAppendTime")
    run("kafka-console-producer", "--topic", topic, stdin="x")
    assert consume(run, topic, 1, *PRINT_ALL)[0].startswith("LogAppendTime:")


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_every_acknowledgement_level_appends(run, new_topic, acks):
    topic = new_topic()
    run(
        "kafka-console-producer", "--topic", topic, "--request-required-acks", acks,
        "--command-property", "enable.idempotence=false", stdin="x\ny\n",
    )  # fmt: skip
    assert consume(run, topic, 2) == ["x", "y"]


def test_producing_to_a_missing_topic_creates_it(run, topic):
    run("kafka-console-producer", "--topic", topic, stdin="first\n")
    assert consume(run, topic, 1) == ["first"]


def test_a_consumer_starts_where_it_is_told(run, new_topic):
    topic = new_topic()
    run("kafka-console-producer", "--topic", topic, stdin="\n".join(map(str, range(10))))
    assert consume(run, topic, 3, offset=7) == ["7", "8", "9"]


def test_get_offsets_knows_every_time(run, new_topic):
    topic = new_topic(partitions=2)
    before_ms = int(time.time() * 1000)
    run(
        "kafka-console-producer",
        "--topic",
        topic,
        stdin="a\nb\nc\n",
    )
    assert sum(offsets(run, topic, "latest").values()) == 3
    assert offsets(run, topic, "earliest") == {0: 0, 1: 0}
    assert offsets(run, topic, "earliest-local") == {0: 0, 1: 0}
    assert offsets(run, topic, "latest-tiered") == {}
    assert offsets(run, topic, "earliest-pending-upload") == {}
    written = {number: 0 for number, end in offsets(run, topic).items() if end}
    assert offsets(run, topic, before_ms) == written
    assert offsets(run, topic, "max-timestamp").keys() == written.keys()
    assert offsets(run, topic, before_ms + 3_600_000) == {}


def test_get_offsets_by_pattern_and_partition(run, new_topic):
    topic = new_topic(partitions=3)
    lines = run("kafka-get-offsets", "--topic-partitions", f"{topic}:1-3").stdout.splitlines()
    assert lines == [f"{topic}:1:0", f"{topic}:2:0"]


def test_delete_records(run, new_topic, json_file):
    topic = new_topic()
    run("kafka-console-producer", "--topic", topic, stdin="\n".join(map(str, range(10))))

    def delete(offset):
        wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": offset}], "version": 1}
        return run("kafka-delete-records", "--offset-json-file", json_file(wanted)).stdout

    assert f"partition: {topic}-0\tlow_watermark: 4" in delete(4)
    assert offsets(run, topic, "earliest") == {0: 4}
    assert consume(run, topic, 1) == ["4"]
    assert "OffsetOutOfRangeException" in delete(1000)
    assert f"partition: {topic}-0\tlow_watermark: 10" in delete(-1)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["acks=1", "enable.idempotence=false"],
        ["compression.type=lz4"],
        ["linger.ms=0", "batch.size=1000"],
    ],
    ids=lambda options: " ".join(options) or "defaults",
)
def test_producer_perf_test_is_acknowledged(run, new_topic, options):
    topic = new_topic(partitions=3)
    properties = [each for option in options for each in ("--command-property", option)]
    result = run(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "2000", "--record-size", "200",
        "--throughput", "-1", *properties,
    )  # fmt: skip
    assert result.stdout.startswith("2000 records sent"), result
    assert sum(offsets(run, topic).values()) == 2000


def test_a_message_past_the_limit_is_refused(run, new_topic):
    topic = new_topic()
    options = ["--topic", topic, "--num-records", "1", "--throughput", "-1"]
    options += ["--command-property", "max.request.size=4000000"]
    run("kafka-producer-perf-test", *options, "--record-size", "1048000")
    assert offsets(run, topic) == {0: 1}
    refused = run("kafka-producer-perf-test", *options, "--record-size", "1048600")
    assert "RecordTooLargeException" in refused.output
    assert offsets(run, topic) == {0: 1}


def test_verifiable_producer_gets_every_acknowledgement(run, new_topic):
    topic = new_topic()
    result = run("kafka-verifiable-producer", "--topic", topic, "--max-messages", "20", "--acks", "-1")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["offset"] for event in events if event["name"] == "producer_send_success"] == list(
        range(20)
    )
    assert (events[-1]["sent"], events[-1]["acked"]) == (20, 20)


def test_a_null_key_is_refused_by_a_compacted_topic(run, new_topic):
    topic = new_topic(cleanup_policy="compact")
    result = run("kafka-verifiable-producer", "--topic", topic, "--max-messages", "1")
    assert re.search(r"producer_send_error.*InvalidRecordException", result.stdout)
