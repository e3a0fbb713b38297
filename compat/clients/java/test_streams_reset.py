"""kafka-streams-application-reset: the group and the internal topics of a Kafka Streams application."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import Consumer

from compat.clients.confluent.members import Members
from compat.harness.waiting import eventually

from .conftest import PARTITIONS, RECORDS
from .tables import committed, rows

EACH = RECORDS // PARTITIONS


@pytest.fixture
def application(run, records, group) -> str:
    """An application that has read everything: a group with offsets at the end."""
    run(
        *("kafka-console-consumer", "--topic", records, "--group", group, "--from-beginning"),
        *("--max-messages", str(RECORDS), "--timeout-ms", "30000"),
    )
    assert committed(run, group) == {0: EACH, 1: EACH}
    return group


def reset(run, application: str, *options: str, ok: bool = True):
    return run("kafka-streams-application-reset", "--application-id", application, *options, ok=ok)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ([], 0),
        (["--to-offset", "4"], 4),
        (["--shift-by", "-3"], EACH - 3),
        (["--to-latest"], EACH),
        (["--to-datetime", "2000-01-01T00:00:00.000"], 0),
        (["--by-duration", "P1D"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_input_topics_are_read_again_from_there(run, records, application, mode, expected):
    reset(run, application, "--input-topics", records, *mode)
    assert committed(run, application) == {0: expected, 1: expected}


def test_offsets_come_from_a_file(run, records, application, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text(f"{records},0,2\n{records},1,7\n")
    reset(run, application, "--input-topics", records, "--from-file", str(file))
    assert committed(run, application) == {0: 2, 1: 7}


def test_internal_topics_are_deleted_unless_it_is_a_dry_run(run, records, application):
    internal = {f"{application}-counts-changelog", f"{application}-by-key-repartition"}
    other = f"{application}-output"
    for topic in (*internal, other):
        run("kafka-topics", "--create", "--topic", topic)

    def existing() -> set[str]:
        listed = set(run("kafka-topics", "--list").stdout.split())
        return listed & {*internal, other}

    reset(run, application, "--input-topics", records, "--dry-run")
    assert existing() == {*internal, other}
    assert committed(run, application) == {0: EACH, 1: EACH}
    reset(run, application, "--input-topics", records)
    assert eventually(existing, lambda found: len(found) == 1) == {other}


def test_an_application_that_runs_is_not_reset(run, records, group, members: Members):
    members.start("instance", records, protocol="classic")
    members.poll_until(lambda: members.counts() == [PARTITIONS])
    reset(run, group, "--input-topics", records, ok=False)


def test_force_removes_members_that_stopped_without_leaving(kafka_server, run, records, application):
    settings = {
        "bootstrap.servers": kafka_server.bootstrap,
        "group.id": application,
        "group.instance.id": "instance",
        "log_level": 2,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([records])
        eventually(lambda: (consumer.poll(0.1), len(consumer.assignment()))[1] == PARTITIONS)
    (row,) = rows(run("kafka-consumer-groups", "--describe", "--group", application, "--state").stdout)
    assert (row["STATE"], row["#MEMBERS"]) == ("Stable", "1")
    reset(run, application, "--input-topics", records, "--force")
    assert committed(run, application) == {0: 0, 1: 0}
