"""kafka-consumer-groups on several groups at once, and what compat/java does not ask of it; kafka-groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat.clients.confluent.members import Members

from .conftest import PARTITIONS, RECORDS
from .tables import committed, rows

EACH = RECORDS // PARTITIONS
RESET = ("kafka-consumer-groups", "--reset-offsets")
DESCRIBE = ("kafka-consumer-groups", "--describe")


@pytest.fixture
def groups(run, records, unique: Callable[[str], str]) -> list[str]:
    """An empty group of each protocol, both at the end of the topic."""
    names = [unique("group"), unique("group")]
    for group, protocol in zip(names, ("classic", "consumer"), strict=True):
        run(
            *("kafka-console-consumer", "--topic", records, "--group", group, "--from-beginning"),
            *("--max-messages", str(RECORDS), "--timeout-ms", "30000"),
            *("--command-property", f"group.protocol={protocol}"),
        )
    return names


def named(groups: list[str]) -> list[str]:
    return [option for group in groups for option in ("--group", group)]


def of(groups: list[str], output: str) -> list[dict[str, str]]:
    return [row for row in rows(output) if row["GROUP"] in groups]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], EACH),
        (["--to-current"], EACH),
        (["--to-offset", "3"], 3),
        (["--to-offset", "1000"], EACH),
        (["--shift-by", "-4"], EACH - 4),
        (["--shift-by", "-1000"], 0),
        (["--shift-by", "1000"], EACH),
        (["--to-datetime", "2000-01-01T00:00:00.000"], 0),
        (["--to-datetime", "2100-01-01T00:00:00.000+02:00"], EACH),
        (["--by-duration", "P1D"], 0),
        (["--by-duration", "PT0S"], EACH),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_offsets_of_groups_of_both_protocols_are_reset(run, groups, mode, expected):
    result = run(*RESET, *named(groups), "--all-topics", *mode, "--execute")
    assert {int(row["NEW-OFFSET"]) for row in of(groups, result.stdout)} == {expected}
    for group in groups:
        assert committed(run, group) == {0: expected, 1: expected}


def test_single_partitions_are_reset(run, records, groups):
    run(*RESET, *named(groups[:1]), "--topic", f"{records}:1", "--to-offset", "3", "--execute")
    assert committed(run, groups[0]) == {0: EACH, 1: 3}
    assert committed(run, groups[1]) == {0: EACH, 1: EACH}


def test_a_plan_of_several_groups_is_exported_and_executed(run, records, groups, tmp_path: Path):
    options = (*named(groups), "--all-topics", "--to-offset", "6")
    plan = [line for line in run(*RESET, *options, "--dry-run", "--export").stdout.splitlines() if line]
    assert sorted(plan) == sorted(f"{group},{records},{p},6" for group in groups for p in (0, 1))
    assert committed(run, groups[0]) == {0: EACH, 1: EACH}
    file = tmp_path / "plan.csv"
    file.write_text("\n".join(plan))
    run(*RESET, *named(groups), "--from-file", str(file), "--execute")
    for group in groups:
        assert committed(run, group) == {0: 6, 1: 6}


def test_all_groups_are_reset(run, records, groups):
    planned = run(*RESET, "--all-groups", "--topic", records, "--to-offset", "5", "--dry-run").stdout
    assert len(of(groups, planned)) == len(groups) * PARTITIONS
    run(*RESET, "--all-groups", "--topic", records, "--to-offset", "5", "--execute")
    for group in groups:
        assert committed(run, group) == {0: 5, 1: 5}


def test_a_group_that_nobody_knows_gets_offsets(run, records, group):
    run(*RESET, "--group", group, "--topic", records, "--to-offset", "2", "--execute")
    assert committed(run, group) == {0: 2, 1: 2}
    (row,) = of([group], run(*DESCRIBE, "--group", group, "--state").stdout)
    assert (row["STATE"], row["#MEMBERS"]) == ("Empty", "0")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_group_is_shown_from_all_sides_and_keeps_its_offsets(
    run, records, group, members: Members, protocol
):
    members.start("the-client", records, protocol=protocol)
    members.poll_until(lambda: len(members.consumed) == RECORDS)
    members.poll_until(lambda: committed(run, group) == {0: EACH, 1: EACH})
    shown = of([group], run(*DESCRIBE, "--all-groups", "--offsets", "--verbose").stdout)
    assert {(row["TOPIC"], row["LAG"], row["CLIENT-ID"]) for row in shown} == {(records, "0", "the-client")}
    (member,) = of([group], run(*DESCRIBE, "--all-groups", "--members", "--verbose").stdout)
    assert (member["CLIENT-ID"], member["#PARTITIONS"]) == ("the-client", "2")
    assert f"{records}:0,1" in member.values()
    (state,) = of([group], run(*DESCRIBE, "--all-groups", "--state", "--verbose").stdout)
    assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
    assert state["ASSIGNMENT-STRATEGY"] == {"classic": "range", "consumer": "uniform"}[protocol]
    run(*RESET, "--group", group, "--all-topics", "--to-earliest", "--execute")
    run("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", records)
    refused = run("kafka-consumer-groups", "--delete", "--group", group)
    assert group in refused.output
    assert committed(run, group) == {0: EACH, 1: EACH}


def test_offsets_of_several_topics_are_deleted(run, records, groups):
    for group in groups:
        options = ("--topic", f"{records}:0", "--topic", "there-is-no-such-topic")
        result = run("kafka-consumer-groups", "--delete-offsets", "--group", group, *options)
        assert "there-is-no-such-topic" in result.output
        assert committed(run, group) == {1: EACH}


def test_groups_are_deleted_and_the_unknown_ones_named(run, groups):
    unknown = f"{groups[0]}-unknown"
    result = run("kafka-consumer-groups", "--delete", *named([*groups, unknown]))
    assert unknown in result.output
    listed = run("kafka-consumer-groups", "--list").stdout.split()
    assert not set(groups) & set(listed)


def test_all_empty_groups_are_deleted(run, records, groups, group, members: Members):
    members.start("alive", records)
    members.poll_until(lambda: members.counts() == [PARTITIONS])
    run("kafka-consumer-groups", "--delete", "--all-groups")
    listed = set(run("kafka-consumer-groups", "--list").stdout.split())
    assert listed & {group, *groups} == {group}


def test_groups_are_listed_by_type_and_protocol(run, groups):
    classic, consumer = groups

    def listed(*options: str) -> list[tuple[str, ...]]:
        return [
            (row["GROUP"], row["TYPE"], row["PROTOCOL"])
            for row in of(groups, run("kafka-groups", "--list", *options).stdout)
        ]

    of_classic, of_consumer = (classic, "Classic", "consumer"), (consumer, "Consumer", "consumer")
    assert sorted(listed()) == sorted([of_classic, of_consumer])
    assert sorted(listed("--consumer")) == sorted([of_classic, of_consumer])
    assert listed("--group-type", "classic") == [of_classic]
    assert listed("--group-type", "consumer") == [of_consumer]
    assert sorted(listed("--protocol", "consumer")) == sorted([of_classic, of_consumer])
    assert listed("--protocol", "connect") == listed("--share") == listed("--streams") == []


def test_regular_expressions_are_validated_as_the_broker_reads_them(run):
    for expression, word in (("orders-[0-9]+", "is valid"), ("orders-(?=x)", "is invalid")):
        assert word in run("kafka-consumer-groups", "--validate-regex", expression).stdout
