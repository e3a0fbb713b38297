"""kbroker apply, lag and bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from compat.clients.cli.conftest import Result, Run


def declare(file: Path, topics: dict[str, Any], **more: Any) -> str:
    file.write_text(yaml.safe_dump({"topics": topics, **more}))
    return str(file)


def changes(result: Result) -> list[tuple[Any, ...]]:
    return [
        (each["topic"], each["action"], each["name"], each["before"], each["after"])
        for each in result.json["changes"]
    ]


def test_topics_are_brought_to_what_a_file_declares(run: Run, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.yml"
    one, two = f"{topic}-one", f"{topic}-two"
    declare(file, {one: {"configs": {"retention.ms": 1000}}, two: None}, defaults={"partitions": 2})
    planned = run("apply", str(file), "--check")
    assert planned.exit_code == 4
    assert "plan: 2 to create, 0 to alter, 0 to delete" in planned.stdout
    assert one not in run("topic", "list").stdout
    assert run("apply", str(file)).exit_code == 0
    unchanged = run("apply", str(file), "--check")
    assert (unchanged.exit_code, unchanged.stdout) == (0, "nothing to change\n")

    configs = {"cleanup.policy": ["compact", "delete"], "retention.ms": 1000}
    declare(file, {one: {"partitions": 3, "configs": configs}, two: {"configs": {"retention.ms": 5}}})
    altered = run("apply", str(file), "--json")
    assert altered.exit_code == 0
    assert changes(altered) == [
        (one, "add-partitions", None, 2, 3),
        (one, "set", "cleanup.policy", None, "compact,delete"),
        (two, "set", "retention.ms", None, "5"),
    ]
    declare(file, {one: {"configs": configs}, two: {}})
    undone = run("apply", str(file), "--json")
    assert changes(undone) == [(two, "unset", "retention.ms", "5", None)]
    assert run("apply", str(file)).stdout == "nothing to change\n"
    (described,) = run("topic", "describe", one, "--json").json
    assert len(described["partitions"]) == 3
    assert described["configs"]["cleanup.policy"] == "compact,delete"


def test_topics_that_are_not_declared_stay_unless_told_otherwise(
    run: Run, topic: str, tmp_path: Path
) -> None:
    names = [row["name"] for row in run("topic", "list", "--json").json]
    run("topic", "create", topic)
    file = declare(tmp_path / "topics.yml", {f"{topic}-new": {}})
    kept = run("apply", file, "--json")
    assert [change[:2] for change in changes(kept)] == [(f"{topic}-new", "create")]
    planned = run("apply", file, "--delete", "--dry-run", "--json")
    assert [change[:2] for change in changes(planned)] == [
        (name, "delete") for name in sorted([*names, topic])
    ]
    assert topic in run("topic", "list").stdout


def test_what_cannot_be_applied_is_said(run: Run, topic: str, tmp_path: Path) -> None:
    run("topic", "create", topic, "-p", "2")
    file = tmp_path / "topics.yml"
    for declared, said in (
        ({topic: {"partitions": 1}}, "can only become more"),
        ({topic: {"replicas": 5}}, "reassignment"),
        ({topic: {"partitons": 1}}, "partitons is not known"),
        ({topic: {"partitions": "many"}}, "whole number"),
    ):
        refused = run("apply", declare(file, declared))
        assert refused.exit_code == 1
        assert said in refused.stderr
    other = f"{topic}-other"
    mixed = run("apply", declare(file, {topic: {"configs": {"retention.ms": "soon"}}, other: {}}))
    assert mixed.exit_code == 1
    assert "retention.ms" in mixed.stderr
    assert "applied to 1 topic" in mixed.stdout
    file.write_text("topics: [")
    assert "is not YAML" in run("apply", str(file)).stderr


def test_lag_is_told_and_checked(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    run("produce", topic, stdin=b"1\n2\n3\n4\n")
    run("consume", topic, "-g", f"{topic}-g", "-n", "1")
    (row,) = run("lag", f"{topic}-g", "--json").json
    assert row["lag"] == 3
    assert run("lag", f"{topic}-g", "--max", "2").exit_code == 4
    assert run("lag", f"{topic}-g", "--max", "3").exit_code == 0


@pytest.mark.parametrize("what", ["produce", "consume", "latency"])
def test_a_benchmark_measures_and_leaves_no_topic(run: Run, what: str) -> None:
    measured = run("bench", what, "-n", "300", "-s", "100", "--json")
    assert measured.exit_code == 0, measured.stderr
    assert measured.json["records"] == 300
    if what == "latency":
        assert 0 < measured.json["read_p50_ms"] <= measured.json["read_max_ms"]
    else:
        assert measured.json["records_per_second"] > 0
    assert "kbroker-bench" not in run("topic", "list").stdout
