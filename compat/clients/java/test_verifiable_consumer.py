"""kafka-verifiable-consumer, the consumer of Kafka's system tests: it tells what happens to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import PARTITIONS, RECORDS
from .tables import committed

ASSIGNORS = "org.apache.kafka.clients.consumer"
EACH = RECORDS // PARTITIONS


def consume(run, topic: str, group: str, *options: str) -> list[dict[str, Any]]:
    """Read all records of the topic; returns the events."""
    result = run(
        *("kafka-verifiable-consumer", "--topic", topic, "--group-id", group),
        *("--max-messages", str(RECORDS), *options),
    )
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]


@pytest.mark.parametrize(
    "options",
    [
        ["--group-protocol", "classic", "--assignment-strategy", f"{ASSIGNORS}.CooperativeStickyAssignor"],
        ["--group-protocol", "classic", "--session-timeout", "10000", "--enable-autocommit"],
        ["--group-protocol", "consumer", "--group-remote-assignor", "range"],
        ["--group-protocol", "consumer", "--enable-autocommit"],
    ],
    ids=["classic cooperative", "classic auto-commit", "consumer range", "consumer auto-commit"],
)
def test_all_is_assigned_read_committed_and_given_back(run, records, group, options):
    events = consume(run, records, group, *options)
    assigned = [each for event in named(events, "partitions_assigned") for each in event["partitions"]]
    everything = [{"topic": records, "partition": partition} for partition in range(PARTITIONS)]
    assert sorted(assigned, key=lambda each: each["partition"]) == everything
    assert sum(event["count"] for event in named(events, "records_consumed")) == RECORDS
    assert all(event["success"] for event in named(events, "offsets_committed"))
    assert named(events, "shutdown_complete")
    assert committed(run, group) == dict.fromkeys(range(PARTITIONS), EACH)
