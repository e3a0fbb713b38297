"""kafka-consumer-groups in all its operations, kafka-groups, and console consumers in a classic group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from compat.harness.brokers import Server

PARTITIONS = 2
RECORDS = 10


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("group")


@pytest.fixture
def records(run, new_topic) -> str:
    """A topic with two partitions and five records in each."""
    topic = new_topic(partitions=PARTITIONS)
    lines = "".join(f"{number % PARTITIONS}:{number}\n" for number in range(RECORDS))
    properties = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    run("kafka-console-producer", "--topic", topic, *properties, stdin=lines)
    return topic


@pytest.fixture
def read(run, records, group) -> str:
    """All records of the topic, read by a console consumer in the group."""
    options = ("--group", group, "--from-beginning", "--max-messages", str(RECORDS))
    result = run("kafka-console-consumer", "--topic", records, "--timeout-ms", "30000", *options)
    assert sorted(map(int, result.stdout.split())) == list(range(RECORDS))
    return records


@pytest.fixture
def member(kafka_server: Server, records: str, group: str) -> Iterator[Consumer]:
    """A live member that owns all partitions."""
    settings = {
        "bootstrap.servers": kafka_server.bootstrap,
        "group.id": group,
        "client.id": "the-member",
        "group.instance.id": "the-instance",
        "enable.auto.commit": False,
        "log_level": 2,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([records])
        deadline = time.monotonic() + 30
        while len(consumer.assignment()) < PARTITIONS:
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        yield consumer


def table(text: str) -> list[dict[str, str]]:
    """The rows of a tool's table, by column name."""
    lines = [line for line in text.splitlines() if line.strip()]
    start = next(number for number, line in enumerate(lines) if line.startswith("GROUP"))
    columns = lines[start].split()
    return [dict(zip(columns, line.split(), strict=False)) for line in lines[start + 1 :]]


def offsets(run, group: str) -> dict[int, str]:
    rows = table(run("kafka-consumer-groups", "--describe", "--group", group).stdout)
    return {int(row["PARTITION"]): row["CURRENT-OFFSET"] for row in rows}


def ends(run, topic: str) -> dict[int, str]:
    lines = run("kafka-get-offsets", "--topic", topic).stdout.split()
    return {int(partition): offset for _, partition, offset in (line.split(":") for line in lines)}


def test_a_console_consumer_goes_on_where_its_group_stopped(run, records, group):
    first = run(
        *("kafka-console-consumer", "--topic", records, "--group", group, "--from-beginning"),
        *("--max-messages", "4", "--timeout-ms", "30000"),
    )
    second = run(
        *("kafka-console-consumer", "--topic", records, "--group", group),
        *("--max-messages", "6", "--timeout-ms", "30000"),
    )
    assert sorted(map(int, (first.stdout + second.stdout).split())) == list(range(RECORDS))


def test_groups_are_listed_with_state_and_type(run, read, group):
    assert group in run("kafka-consumer-groups", "--list").stdout.split()
    rows = {
        row["GROUP"]: row for row in table(run("kafka-consumer-groups", "--list", "--state", "--type").stdout)
    }
    assert (rows[group]["STATE"], rows[group]["TYPE"]) == ("Empty", "Classic")
    assert group in run("kafka-consumer-groups", "--list", "--state", "Empty").stdout
    assert group not in run("kafka-consumer-groups", "--list", "--state", "Stable").stdout
    assert group not in run("kafka-consumer-groups", "--list", "--type", "consumer").stdout
    line = next(line for line in run("kafka-groups", "--list").stdout.splitlines() if line.startswith(group))
    assert line.split() == [group, "Classic", "consumer"]


def test_an_empty_group_is_described_by_its_offsets(run, read, group):
    result = run("kafka-consumer-groups", "--describe", "--group", group)
    assert f"Consumer group '{group}' has no active members." in result.output
    assert offsets(run, group) == ends(run, read)
    rows = table(result.stdout)
    assert {(row["TOPIC"], row["LAG"], row["CONSUMER-ID"]) for row in rows} == {(read, "0", "-")}


def test_a_live_group_is_described_by_its_members(run, member, records, group, kafka_server):
    rows = table(run("kafka-consumer-groups", "--describe", "--group", group).stdout)
    assert {row["CLIENT-ID"] for row in rows} == {"the-member"}
    assert {row["HOST"] for row in rows} == {"/127.0.0.1"}
    (row,) = table(
        run("kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose").stdout
    )
    assert (row["GROUP-INSTANCE-ID"], row["#PARTITIONS"]) == ("the-instance", "2")
    assert row["CURRENT-ASSIGNMENT"] == f"{records}:0,1"
    state = run("kafka-consumer-groups", "--describe", "--group", group, "--state").stdout
    assert f"127.0.0.1:{kafka_server.bootstrap.rpartition(':')[2]}" in state
    assert "Stable" in state
    assert "range" in state


def test_a_missing_group_is_described_as_missing(run, group):
    result = run("kafka-consumer-groups", "--describe", "--group", group)
    assert f"Group {group} not found." in result.output


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (["--to-earliest"], {0: "0", 1: "0"}),
        (["--to-latest"], None),
        (["--to-current"], None),
        (["--to-offset", "2"], {0: "2", 1: "2"}),
        (["--to-datetime", "2000-01-01T00:00:00.000"], {0: "0", 1: "0"}),
        (["--by-duration", "P1D"], {0: "0", 1: "0"}),
    ],
)
def test_offsets_are_reset(run, read, group, mode, expected):
    run("kafka-consumer-groups", "--reset-offsets", "--group", group, "--topic", read, *mode, "--execute")
    assert offsets(run, group) == (expected or ends(run, read))


def test_offsets_are_shifted(run, read, group):
    before = offsets(run, group)
    run(
        *("kafka-consumer-groups", "--reset-offsets", "--group", group, "--all-topics"),
        *("--shift-by", "-1", "--execute"),
    )
    assert offsets(run, group) == {partition: str(int(each) - 1) for partition, each in before.items()}


def test_a_dry_run_changes_nothing(run, read, group):
    before = offsets(run, group)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    for mode in (["--to-earliest"], ["--to-datetime", now]):
        run("kafka-consumer-groups", "--reset-offsets", "--group", group, "--topic", read, *mode, "--dry-run")
    assert offsets(run, group) == before


def test_offsets_are_exported_and_imported(run, read, group, tmp_path: Path):
    command = ("kafka-consumer-groups", "--reset-offsets", "--group", group)
    plan = run(*command, "--topic", f"{read}:1", "--to-offset", "1", "--dry-run", "--export").stdout
    file = tmp_path / "offsets.csv"
    file.write_text("".join(line + "\n" for line in plan.splitlines() if read in line))
    run(*command, "--from-file", str(file), "--execute")
    assert offsets(run, group)[1] == "1"


def test_offsets_of_a_live_group_are_not_reset(run, member, records, group):
    result = run(
        *("kafka-consumer-groups", "--reset-offsets", "--group", group, "--topic", records),
        *("--to-earliest", "--execute"),
    )
    assert "Stable" in result.output


def test_offsets_are_deleted(run, read, group):
    result = run("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{read}:0")
    assert "Successful" in result.stdout
    assert set(offsets(run, group)) == {1}


def test_offsets_of_a_subscribed_topic_are_not_deleted(run, member, records, group):
    result = run("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", records)
    assert "active" in result.output or "subscribed" in result.output


def test_an_empty_group_is_deleted(run, read, group):
    result = run("kafka-consumer-groups", "--delete", "--group", group)
    assert f"Deletion of requested consumer groups ('{group}') was successful." in result.stdout
    assert group not in run("kafka-consumer-groups", "--list").stdout.split()


def test_a_live_group_is_not_deleted(run, member, group):
    result = run("kafka-consumer-groups", "--delete", "--group", group)
    assert "The group is not empty" in result.output
