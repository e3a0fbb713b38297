"""kbroker group and lag where groups of several types stand side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import confluent_kafka
import pytest

from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run
from tests.support.server_process import ServerProcess, eventually


@pytest.fixture
def sharer(run: Run, broker: KafkaBroker) -> Iterator[confluent_kafka.ShareConsumer]:
    """Of the share group "sharers", at the end of 3 records; the classic group "billing" has read one."""
    run("topic", "create", "orders", "-p", "1")
    run("produce", "orders", stdin=b"1\n2\n3\n")
    run("consume", "orders", "-g", "billing", "-n", "1")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "sharers", "log_level": 0}
    with closing(confluent_kafka.ShareConsumer(settings)) as consumer:
        consumer.subscribe(["orders"])

        def has_begun() -> bool:
            consumer.poll(0.1)
            rows = run("lag", "--json").json
            return any(row["group"] == "sharers" and row["start_offset"] == 3 for row in rows)

        eventually(has_begun)
        yield consumer


def test_one_table_shows_committed_and_start_offsets(run: Run, sharer: confluent_kafka.ShareConsumer) -> None:
    assert [line.split() for line in run("lag").stdout.splitlines()] == [
        ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "START", "END", "LAG"],
        ["billing", "orders", "0", "1", "-", "3", "2"],
        ["sharers", "orders", "0", "-", "3", "3", "0"],
    ]
    assert "COMMITTED" not in run("lag", "sharers").stdout
    assert "START" not in run("lag", "billing").stdout


def test_groups_are_listed_by_state_and_type(run: Run, sharer: confluent_kafka.ShareConsumer) -> None:
    def listed(*options: str) -> list[tuple[str, str, str]]:
        rows = run("group", "list", "--json", *options).json
        return [(row["group"], row["state"], row["type"]) for row in rows]

    billing, sharers = ("billing", "Empty", "classic"), ("sharers", "Stable", "share")
    assert listed() == [billing, sharers]
    assert listed("--type", "Share") == listed("--state", "stable") == [sharers]
    assert listed("--state", "Empty", "--state", "Stable", "--type", "classic") == [billing]
    assert listed("--state", "NotReady") == []  # which only streams groups are
    assert "there are no such groups" in run("group", "list", "--state", "NotReady").stderr
    assert run("group", "list", "--type", "nonsense").exit_code == 2


def test_a_share_group_goes_on_where_it_is_set(run: Run, sharer: confluent_kafka.ShareConsumer) -> None:
    refused = run("group", "reset", "sharers", "--to-start")
    assert refused.exit_code == 1
    assert "Stop the group's consumers first" in refused.stderr
    run("topic", "create", "others", "-p", "1")
    sharer.close()
    assert "could be shifted" in run("group", "reset", "sharers", "--shift", "1", "-t", "others").stderr
    run("group", "reset", "sharers", "--to-offset", "0", "-t", "others")
    assert run("group", "reset", "sharers", "--shift", "-2").exit_code == 0
    rows = run("group", "lag", "sharers", "--json").json
    assert [(row["topic"], row["start_offset"], row["lag"]) for row in rows] == [
        ("orders", 1, 2),
        ("others", 0, 0),
    ]


def test_a_login_that_is_refused_is_told_as_such(run: Run) -> None:
    listener = ("--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0", "--set", "sasl.enabled.mechanisms=PLAIN")
    with ServerProcess("--in-memory", *listener) as server:
        login = ("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.username=a", "-X", "sasl.password=b")
        refused = run("group", "list", "-b", server.bootstrap, "--timeout", "3", *login)
    assert refused.exit_code == 3
    assert "refuses the login by PLAIN" in refused.stderr
    assert "SASL_AUTHENTICATION_FAILED" in refused.stderr
