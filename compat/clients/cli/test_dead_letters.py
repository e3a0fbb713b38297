"""kbroker dlq: the same on every broker."""

from __future__ import annotations

import pytest

from compat.clients.cli.conftest import Run


@pytest.fixture
def letters(run: Run, topic: str) -> str:
    """Six dead letters in a topic of three partitions, four of one origin, two of another."""
    run("topic", "create", topic, "-p", "2")
    run("topic", "create", f"dlq.{topic}", "-p", "3")
    for number in range(6):
        prefix, group = ("__connect.errors.", "connector.name") if number < 2 else ("__dlq.errors.", "group")
        said = {"topic": topic, "partition": str(number % 2), "offset": str(number), group: f"{topic}-group"}
        headers = [word for name, value in said.items() for word in ("-H", f"{prefix}{name}={value}")]
        wrote = run(
            "produce", f"dlq.{topic}", "-k", f"k{number}", "-p", str(number % 3), "-H", "own=1", *headers,
            stdin=b"v%d\n" % number,
        )  # fmt: skip
        assert wrote.exit_code == 0
    return f"dlq.{topic}"


def test_letters_are_listed_and_shown(run: Run, letters: str, topic: str) -> None:
    (found,) = [each for each in run("dlq", "list", "--json").json if each["topic"] == letters]
    assert sorted((each["kind"], each["records"]) for each in found["causes"]) == [
        ("connect", 2),
        ("share", 4),
    ]
    lines = run("dlq", "show", letters, "--group", f"{topic}-group", "--json").json_lines
    assert {(line["origin"]["topic"], line["key"], line["value"]) for line in lines} == {
        (topic, f"k{number}", f"v{number}") for number in range(6)
    }
    assert {tuple(map(tuple, line["headers"])) for line in lines} == {(("own", "1"),)}


def test_letters_go_back_once_and_are_purged(run: Run, letters: str, topic: str) -> None:
    assert run("dlq", "replay", letters, "--partition", "1").stdout == f"2 records sent to {topic}\n"
    assert run("dlq", "replay", letters, "--rate", "100").stdout == f"4 records sent to {topic}\n"
    again = run("dlq", "replay", letters)
    assert (again.exit_code, again.stdout) == (0, "")
    lines = run("consume", topic, "--json").json_lines
    assert sorted((line["partition"], line["value"]) for line in lines) == [
        (number % 2, f"v{number}") for number in (0, 2, 4, 1, 3, 5)
    ]
    assert {tuple(map(tuple, line["headers"])) for line in lines} == {(("own", "1"),)}
    purged = run("dlq", "purge", letters, "--replayed", "--yes", "--json").json
    assert [row["deleted"] for row in purged] == [2, 2, 2]
    assert run("dlq", "show", letters).stdout == ""
