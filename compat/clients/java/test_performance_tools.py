"""kafka-consumer-perf-test and kafka-e2e-latency."""

from __future__ import annotations

import re

import pytest

from .conftest import PARTITIONS, RECORDS
from .tables import committed


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumer_perf_reads_everything_and_commits_it(run, records, group, protocol):
    result = run(
        *("kafka-consumer-perf-test", "--topic", records, "--group", group, "--num-records", str(RECORDS)),
        *("--command-property", f"group.protocol={protocol}"),
    )
    header, values = (line.split(", ") for line in result.stdout.splitlines())
    assert dict(zip(header, values, strict=True))["data.consumed.in.nMsg"] == str(RECORDS)
    assert committed(run, group) == dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)


def test_consumer_perf_follows_a_regular_expression_and_reports_as_it_goes(run, records, group):
    result = run(
        *("kafka-consumer-perf-test", "--include", f"{records}.*", "--group", group),
        *(
            "--num-records",
            str(RECORDS),
            "--show-detailed-stats",
            "--reporting-interval",
            "1",
            "--hide-header",
        ),
    )
    assert int(result.stdout.split(", ")[4]) > 0


def test_end_to_end_latency_is_measured_record_by_record(run, new_topic):
    topic = new_topic()
    result = run(
        *("kafka-e2e-latency", "--topic", topic, "--num-records", "40"),
        *("--producer-acks", "all", "--record-size", "100"),
    )
    assert re.search(r"Avg latency: [\d.]+ ms", result.stdout), result
    assert re.search(r"50th = \d+, 99th = \d+, 99.9th = \d+", result.stdout), result
    assert run("kafka-get-offsets", "--topic", topic).stdout.split() == [f"{topic}:0:40"]
