"""kafka-acls: every action, every kind of resource, and what the console clients are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from compat.clients.java.conftest import Run
from compat.harness.authorized import EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF, one
from compat.harness.brokers import Server
from compat.harness.waiting import eventually

RESOURCE = re.compile(r"resourceType=(\w+), name=(\S+), patternType=(\w+)")
ACL = re.compile(r"principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)")
Acls = set[tuple[str, ...]]


@pytest.fixture(scope="module")
def kafka_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with one(request.param, EVERYBODY_MAY_WHAT_NO_ACL_SPEAKS_OF) as server:
        yield server


def listed(run: Run, *arguments: str) -> Acls:
    found: Acls = set()
    resource: tuple[str, ...] = ()
    for line in run("kafka-acls", "--list", *arguments).stdout.splitlines():
        if (match := RESOURCE.search(line)) is not None:
            resource = match.groups()
        elif (match := ACL.search(line)) is not None:
            found.add((*resource, *match.groups()))
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            [
                "--allow-principal",
                "User:alice",
                "--operation",
                "Read",
                "--operation",
                "Alter",
                "--topic",
                "{}",
            ],
            {
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "ALTER", "ALLOW"),
            },
        ),
        (
            ["--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--topic", "{}"],
            {("TOPIC", "{}", "LITERAL", "User:bob", "10.0.0.1", "ALL", "DENY")},
        ),
        (
            [
                *("--allow-principal", "User:*", "--allow-host", "10.0.0.1", "--allow-host", "10.0.0.2"),
                *("--operation", "Describe", "--group", "{}", "--resource-pattern-type", "prefixed"),
            ],
            {
                ("GROUP", "{}", "PREFIXED", "User:*", "10.0.0.1", "DESCRIBE", "ALLOW"),
                ("GROUP", "{}", "PREFIXED", "User:*", "10.0.0.2", "DESCRIBE", "ALLOW"),
            },
        ),
        (
            ["--allow-principal", "User:alice", "--producer", "--topic", "{}", "--transactional-id", "{}"],
            {
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "WRITE", "ALLOW"),
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW"),
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "CREATE", "ALLOW"),
                ("TRANSACTIONAL_ID", "{}", "LITERAL", "User:alice", "*", "WRITE", "ALLOW"),
                ("TRANSACTIONAL_ID", "{}", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW"),
            },
        ),
        (
            ["--allow-principal", "User:alice", "--consumer", "--topic", "{}", "--group", "{}"],
            {
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
                ("TOPIC", "{}", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW"),
                ("GROUP", "{}", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
            },
        ),
        (
            ["--allow-principal", "User:alice", "--operation", "Describe", "--delegation-token", "{}"],
            {("DELEGATION_TOKEN", "{}", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW")},
        ),
        (
            ["--allow-principal", "User:alice", "--operation", "CreateTokens", "--user-principal", "{}"],
            {("USER", "{}", "LITERAL", "User:alice", "*", "CREATE_TOKENS", "ALLOW")},
        ),
    ],
    ids=["operations", "deny", "hosts and a prefix", "producer", "consumer", "token", "user"],
)
def test_acls_are_added_listed_and_removed(
    run: Run, topic: str, arguments: list[str], expected: Acls
) -> None:
    arguments = [argument.replace("{}", topic) for argument in arguments]
    expected = {tuple(part.replace("{}", topic) for part in acl) for acl in expected}

    def of_this_test() -> Acls:
        return {acl for acl in listed(run) if acl[1] == topic}

    run("kafka-acls", "--add", *arguments)
    eventually(of_this_test, lambda found: found == expected)
    run("kafka-acls", "--remove", "--force", *arguments)
    eventually(of_this_test, lambda found: not found)


def test_acls_are_found_by_what_they_match_and_by_their_principal(run: Run, topic: str) -> None:
    prefix = topic[:-2]
    allow = ("--allow-principal", f"User:{topic}", "--operation", "Read")
    run("kafka-acls", "--add", *allow, "--topic", prefix, "--resource-pattern-type", "prefixed")
    run("kafka-acls", "--add", *allow, "--group", topic)
    found = eventually(lambda: listed(run, "--principal", f"User:{topic}"), lambda found: len(found) == 2)
    matching = listed(run, "--topic", topic, "--resource-pattern-type", "match")
    assert matching == {acl for acl in found if acl[0] == "TOPIC"}
    assert listed(run, "--topic", topic) == set()
    run("kafka-acls", "--remove", "--force", "--topic", topic, "--resource-pattern-type", "match")
    run("kafka-acls", "--remove", "--force", "--group", topic)
    eventually(lambda: listed(run, "--principal", f"User:{topic}"), lambda found: not found)


def test_idempotent_producers_and_the_cluster(run: Run) -> None:
    """What is said of the cluster is said at the end: until then everybody may do everything to it."""
    run("kafka-acls", "--add", "--allow-principal", "User:ANONYMOUS", "--operation", "All", "--cluster")
    run(
        "kafka-acls", "--add", "--allow-principal", "User:alice", "--idempotent", "--producer", "--topic", "i"
    )
    eventually(
        lambda: listed(run, "--cluster"),
        lambda found: (
            found
            == {
                ("CLUSTER", "kafka-cluster", "LITERAL", "User:ANONYMOUS", "*", "ALL", "ALLOW"),
                ("CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "*", "IDEMPOTENT_WRITE", "ALLOW"),
            }
        ),
    )


def test_what_others_alone_may_do_is_refused_and_told(run: Run, topic: str) -> None:
    run("kafka-topics", "--create", "--topic", topic)
    run("kafka-console-producer", "--topic", topic, stdin="before\n")
    run("kafka-acls", "--add", "--allow-principal", "User:other", "--operation", "All", "--topic", topic)
    eventually(lambda: listed(run, "--topic", topic))
    refused = run("kafka-console-producer", "--topic", topic, stdin="after\n")
    assert "TopicAuthorizationException" in refused.output
    consumer = ("kafka-console-consumer", "--topic", topic, "--from-beginning", "--timeout-ms", "10000")
    assert "TopicAuthorizationException" in run(*consumer).output
    assert topic not in run("kafka-topics", "--list").stdout
    run("kafka-acls", "--add", "--allow-principal", "User:ANONYMOUS", "--operation", "Read", "--topic", topic)
    eventually(lambda: len(listed(run, "--topic", topic)) == 2)
    assert run(*consumer, "--max-messages", "1").stdout == "before\n"
