"""kbroker topic, config, cluster, ping."""

from __future__ import annotations

import time

import pytest

from compat.clients.cli.conftest import Run
from compat.harness.brokers import Server


def test_a_topic_is_created_listed_described_and_deleted(run: Run, topic: str) -> None:
    created = run("topic", "create", topic, "-p", "2", "-c", "retention.ms=3600000")
    assert (created.exit_code, created.stdout) == (0, f"{topic}: created\n")
    (listed,) = [row for row in run("topic", "list", "--json").json if row["name"] == topic]
    assert (listed["partitions"], listed["replicas"], listed["internal"]) == (2, 1, False)
    assert topic in run("topic", "list").stdout
    (described,) = run("topic", "describe", topic, "--json").json
    assert described["configs"]["retention.ms"] == "3600000"
    assert [row["log_end_offset"] for row in described["partitions"]] == [0, 0]
    assert "retention.ms = 3600000" in run("topic", "describe", topic).stdout
    assert run("topic", "delete", topic).exit_code == 0
    assert topic not in run("topic", "list").stdout


def test_a_topic_that_exists_is_refused_unless_that_is_accepted(run: Run, topic: str) -> None:
    run("topic", "create", topic)
    again = run("topic", "create", topic, f"{topic}-other")
    assert again.exit_code == 1
    assert again.stdout == f"{topic}-other: created\n"
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert "--if-not-exists" in again.stderr
    accepted = run("topic", "create", topic, "--if-not-exists", "--json")
    assert accepted.exit_code == 0
    assert accepted.json == [{"topic": topic, "ok": True, "result": "exists already"}]


def test_what_does_not_exist_is_said_with_what_to_do(run: Run, topic: str) -> None:
    for arguments in (
        ("topic", "describe", topic),
        ("topic", "delete", topic),
        ("topic", "trim", topic, "--all"),
        ("topic", "add-partitions", topic, "-n", "1"),
        ("config", "get", "topic", topic),
        ("consume", topic),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert topic in result.stderr
        assert "kbroker topic list" in result.stderr
        assert "Traceback" not in result.stderr
    assert run("topic", "delete", topic, "--if-exists").exit_code == 0


def test_partitions_are_added_and_never_taken(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    assert run("topic", "add-partitions", topic, "-n", "2").exit_code == 0
    assert len(run("topic", "describe", topic, "--json").json[0]["partitions"]) == 3
    fewer = run("topic", "add-partitions", topic, "--to", "2")
    assert fewer.exit_code == 1
    assert "INVALID_PARTITIONS" in fewer.stderr


def test_configs_are_set_shown_and_unset(run: Run, topic: str) -> None:
    run("topic", "create", topic)
    assert run("topic", "alter", topic, "-c", "retention.ms=1000").exit_code == 0
    assert run("config", "set", "topic", topic, "max.message.bytes=2000").exit_code == 0
    rows = {row["name"]: row["value"] for row in run("config", "get", "topic", topic, "--json").json}
    assert (rows["retention.ms"], rows["max.message.bytes"]) == ("1000", "2000")
    assert run("config", "set", "topic", topic, "--unset", "retention.ms").exit_code == 0
    (row,) = run("config", "get", "topic", topic, "retention.ms", "--json").json
    assert row["value"] == "604800000"
    assert len(run("config", "get", "topic", topic, "--all", "--json").json) > 20


def test_a_wrong_config_is_refused(run: Run, topic: str) -> None:
    run("topic", "create", topic)
    wrong = run("config", "set", "topic", topic, "retention.ms=soon")
    assert wrong.exit_code == 1
    assert "retention.ms" in wrong.stderr
    assert "no config nonsense" in run("config", "get", "topic", topic, "nonsense").stderr
    dry = run("config", "set", "topic", topic, "retention.ms=5", "--dry-run")
    assert dry.stdout == f"topic {topic}: could be altered\n"
    assert "5" not in {row["value"] for row in run("config", "get", "topic", topic, "--json").json}


def test_broker_configs_are_set_and_shown(run: Run, kafka_server: Server) -> None:
    broker = str(kafka_server.node_id)
    try:
        assert run("config", "set", "broker", broker, "log.cleaner.threads=2").exit_code == 0
        assert run("config", "get", "broker", broker, "log.cleaner.threads", "--json").json[0]["value"] == "2"
    finally:
        run("config", "set", "broker", broker, "--unset", "log.cleaner.threads")
    assert "no broker id" in run("config", "get", "broker", "one").stderr


def test_trim_deletes_what_is_below_an_offset_or_a_time(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1", "-c", "retention.ms=-1")  # its timestamps are old
    run("produce", topic, "--timestamp", "1700000000000", stdin=b"1\n2\n3\n")
    run("produce", topic, "--timestamp", "1700000100000", stdin=b"4\n5\n")
    assert run("topic", "trim", topic, "-o", "2", "--json").json == [
        {"topic": topic, "partition": 0, "log_start_offset": 2}
    ]
    assert run("consume", topic).stdout == "3\n4\n5\n"
    run("topic", "trim", topic, "--before", "1700000050000")
    assert run("consume", topic).stdout == "4\n5\n"
    beyond = run("topic", "trim", topic, "-o", "99")
    assert beyond.exit_code == 1
    assert "ends at offset 5" in beyond.stderr
    run("topic", "trim", topic, "--all")
    assert run("consume", topic).stdout == ""


def test_the_cluster_and_its_brokers_are_shown(run: Run, kafka_server: Server) -> None:
    info = run("cluster", "info", "--json").json
    assert info["cluster_id"]
    assert [broker["id"] for broker in info["brokers"]] == [kafka_server.node_id]
    assert info["brokers"][0]["controller"]
    assert kafka_server.bootstrap in run("cluster", "info").stdout


def test_ping_tells_by_its_exit_code(run: Run, kafka_server: Server) -> None:
    assert run("ping").stdout.startswith(f"{kafka_server.bootstrap} answers")
    assert run("ping", "-q").stdout == ""
    assert run("ping", "--json").json["address"] == kafka_server.bootstrap


@pytest.mark.parametrize("command", [("ping",), ("topic", "list"), ("consume", "t")])
def test_where_nobody_listens_commands_say_so_at_once(run: Run, command: tuple[str, ...]) -> None:
    started = time.monotonic()
    result = run(*command, "-b", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "127.0.0.1:1" in result.stderr
    assert "kbroker serve" in result.stderr
    assert time.monotonic() - started < 5
