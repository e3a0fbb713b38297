"""kbroker consume: where it begins, and what it says when it cannot begin there."""

from __future__ import annotations

import subprocess

from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run, running


def test_an_offset_beyond_the_end_is_an_error_that_says_where_the_end_is(run: Run) -> None:
    run("topic", "create", "t", "-p", "1")
    run("produce", "t", stdin=b"0\n1\n2\n")
    for arguments in (("-o", "9999"), ("-o", "4"), ("-o", "4", "-g", "billing")):
        result = run("consume", "t", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "partition 0 of t ends at offset 3" in result.stderr
        assert "--follow" in result.stderr
    assert run("consume", "t", "-o", "3") == (0, "", "")


def test_partitions_that_end_before_the_offset_are_told_where_others_do_not(run: Run) -> None:
    run("topic", "create", "t", "-p", "2")
    run("produce", "t", "-p", "1", stdin=b"0\n1\n2\n")
    result = run("consume", "t", "-o", "2")
    assert (result.exit_code, result.stdout) == (0, "2\n")
    assert "partition 0 of t ends at offset 0" in result.stderr


def test_who_follows_waits_for_an_offset_that_is_not_there_yet(run: Run, broker: KafkaBroker) -> None:
    run("topic", "create", "t", "-p", "1")
    run("produce", "t", stdin=b"0\n1\n2\n")
    arguments = ("-o", "4", "-n", "1", "--follow", "-b", broker.bootstrap_servers)
    with running("consume", "t", *arguments, stdout=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert "ends at offset 3: waiting for offset 4" in process.stderr.readline()
        run("produce", "t", stdin=b"3\n4\n")
        assert process.stdout.read() == "4\n"


def test_topics_are_named_by_pattern(run: Run) -> None:
    for topic in ("orders-a", "orders-b", "clicks"):
        run("topic", "create", topic, "-p", "1")
        run("produce", topic, stdin=topic.encode())
    assert sorted(run("consume", "orders-*").stdout.split()) == ["orders-a", "orders-b"]
    assert sorted(run("consume", "^click|^orders-b").stdout.split()) == ["clicks", "orders-b"]
    assert sorted(run("consume", "clicks", "*-b", "-g", "billing").stdout.split()) == ["clicks", "orders-b"]
    assert "no topic matches nothing-*" in run("consume", "nothing-*").stderr
    assert "no regular expression" in run("consume", "^(").stderr


def test_what_users_of_kafka_and_kcat_type_is_understood(run: Run, broker: KafkaBroker) -> None:
    address = ("--bootstrap-server", broker.bootstrap_servers)
    made = run("topic", "create", "--topic", "t", "--partitions", "1", "--replication-factor", "1", *address)
    assert made.stdout == "t: created\n"
    assert run("produce", "--topic=t", *address, stdin=b"0\n1\n2\n").exit_code == 0
    for arguments in (
        ("--topic", "t", "--from-beginning", "--max-messages", "2"),
        ("-t", "t", "-e", "-c", "2"),
        ("-o", "beginning", "-t", "t", "-n", "2"),
    ):
        assert run("consume", *address, *arguments).stdout == "0\n1\n", arguments
    run("consume", "-t", "t", "-g", "billing")
    assert run("group", "describe", "--group", "billing").exit_code == 0
    assert run("consume", "-t").exit_code == 2
    assert run("consume", "-o", "beginning").exit_code == 2
