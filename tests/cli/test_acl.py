"""`kbroker acl`: who may do what."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbroker.testing import KafkaBroker

from .conftest import Run

SETTINGS = {"authorizer.class.name": "kbroker", "super.users": "User:ANONYMOUS"}


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(configs=SETTINGS) as running:
        yield running


def listed(run: Run, *arguments: str) -> set[tuple[str, ...]]:
    rows = run("acl", "list", "--json", *arguments).json
    return {tuple(row[name] for name in ("permission", "operation", "resource", "name")) for row in rows}


def test_acls_are_added_listed_and_removed(run: Run) -> None:
    added = run("acl", "add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    assert (added.exit_code, added.stdout) == (0, "added 1 ACL\n")
    run("acl", "add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--group", "g", "--cluster")
    prefixed = ("--topic", "or", "--resource-pattern-type", "prefixed")
    run("acl", "add", "--allow-principal", "User:alice", "--operation", "describe-configs", *prefixed)
    assert listed(run) == {
        ("ALLOW", "READ", "TOPIC", "orders"),
        ("ALLOW", "DESCRIBE_CONFIGS", "TOPIC", "or"),
        ("DENY", "ALL", "GROUP", "g"),
        ("DENY", "ALL", "CLUSTER", "kafka-cluster"),
    }
    assert listed(run, "--principal", "User:bob", "--cluster") == {
        ("DENY", "ALL", "CLUSTER", "kafka-cluster")
    }
    assert len(listed(run, "--topic", "orders", "--resource-pattern-type", "match")) == 2
    removed = run("acl", "remove", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1")
    assert removed.stdout == "removed 2 ACLs\n"
    assert run("acl", "remove", "--yes").stdout == "removed 2 ACLs\n"
    assert listed(run) == set()


def test_what_producers_and_consumers_need_is_added_together(run: Run) -> None:
    who = ("--allow-principal", "User:alice", "--producer", "--consumer")
    run("acl", "add", *who, "--topic", "orders", "--group", "g", "--transactional-id", "t")
    assert listed(run) == {
        *(("ALLOW", operation, "TOPIC", "orders") for operation in ("READ", "WRITE", "DESCRIBE", "CREATE")),
        ("ALLOW", "READ", "GROUP", "g"),
        ("ALLOW", "WRITE", "TRANSACTIONAL_ID", "t"),
        ("ALLOW", "DESCRIBE", "TRANSACTIONAL_ID", "t"),
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("add", "--topic", "t"), "who?"),
        (("add", "--allow-principal", "User:a"), "on what?"),
        (("add", "--allow-principal", "alice", "--topic", "t"), "write User:alice"),
        (("add", "--allow-principal", "User:a", "--topic", "t", "--operation", "Fly"), "no operation Fly"),
        (("remove",), "this would remove all ACLs"),
    ],
)
def test_what_makes_no_sense_is_told(run: Run, arguments: tuple[str, ...], reason: str) -> None:
    result = run("acl", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_without_an_authorizer_the_reason_is_told() -> None:
    import subprocess
    import sys

    with KafkaBroker() as open_to_all:
        command = [sys.executable, "-m", "kbroker", "acl", "list", "-b", open_to_all.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "SECURITY_DISABLED" in done.stderr
