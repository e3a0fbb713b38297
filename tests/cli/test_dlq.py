"""kbroker dlq: what is in dead-letter topics, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import confluent_kafka
import pytest

from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run

Headers = list[tuple[str, bytes | None]]


def share_headers(offset: int, reason: str = "Offset rejected by client.", **changed: str) -> Headers:
    said = {
        "topic": "orders", "partition": "1", "offset": str(offset), "group": "billing",
        "delivery.count": "5", "message": reason, **changed,
    }  # fmt: skip
    return [(f"__dlq.errors.{name}", value.encode()) for name, value in said.items()]


def pipeline_headers(offset: int) -> Headers:
    said = {"reason": "amount > 0", "pipeline": "daily", "source": "orders", "topic": "orders",
            "partition": "0", "offset": str(offset), "timestamp": "1"}  # fmt: skip
    return [(f"kbroker.{name}", value.encode()) for name, value in said.items()]


def write(broker: KafkaBroker, topic: str, records: Iterable[dict[str, Any]]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(20) == 0


def read(broker: KafkaBroker, topic: str) -> list[tuple[Any, ...]]:
    """Partition, key, value and headers of what is committed."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    found = []
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
        left = len(partitions)
        while left:
            message = consumer.poll(10)
            assert message is not None
            if message.error():
                left -= 1
            else:
                found.append((message.partition(), message.key(), message.value(), message.headers() or []))
    return sorted(found, key=lambda each: (each[0], each[1] or b"", each[2] or b""))


@pytest.fixture
def letters(broker: KafkaBroker, run: Run) -> None:
    """Ten of a share group's and two of a pipeline's in dlq.orders."""
    run("topic", "create", "orders", "-p", "2")
    run("topic", "create", "dlq.orders", "-p", "1")
    rejected = [
        {
            "key": b"k%d" % n,
            "value": b"v%d" % n,
            "headers": [("trace", b"%d" % n), ("empty", None), *share_headers(n)],
        }
        for n in range(8)
    ]
    expired = [
        {
            "key": b"k%d" % n,
            "value": b"v%d" % n,
            "headers": share_headers(n, "Offset delivery count exceeded the threshold."),
        }
        for n in (8, 9)
    ]
    others = [{"value": b"p%d" % n, "headers": pipeline_headers(n)} for n in range(2)]
    write(broker, "dlq.orders", [*rejected, *expired, *others])


def test_list_counts_by_origin_and_reason(letters: None, run: Run) -> None:
    (topic,) = run("dlq", "list", "--json").json
    assert (topic["topic"], topic["offsets"]) == ("dlq.orders", 12)
    assert [
        (each["from_topic"], each["group"], each["reason"], each["records"]) for each in topic["causes"]
    ] == [
        ("orders", "billing", "Offset rejected by client.", 8),
        ("orders", "billing", "Offset delivery count exceeded the threshold.", 2),
        ("orders", "daily", "amount > 0", 2),
    ]
    shown = run("dlq", "list").stdout.splitlines()
    assert shown[0].split()[:5] == ["TOPIC", "FROM", "GROUP", "REASON", "RECORDS"]
    assert len(shown) == 4


def test_list_finds_topics_of_any_name_by_their_last_records(broker: KafkaBroker, run: Run) -> None:
    write(broker, "plain", [{"value": b"x"}])
    write(broker, "rejected", [{"value": b"x"}, {"value": b"y", "headers": pipeline_headers(3)}])
    run("topic", "create", "dlq.empty")
    found = {topic["topic"]: topic for topic in run("dlq", "list", "--json").json}
    assert set(found) == {"rejected", "dlq.empty"}
    assert [each["kind"] for each in found["rejected"]["causes"]] == [None, "pipeline"]
    assert {each["topic"] for each in run("dlq", "list", "--json", "--prefix", "pl").json} == {
        "plain",
        "rejected",
    }
    assert [each["topic"] for each in run("dlq", "list", "plain", "--json").json] == ["plain"]
    result = run("dlq", "list", "rejected", "--scan", "1")
    assert "only the newest 1 of 2 offsets were counted" in result.stderr


def test_list_of_nothing_says_so(run: Run) -> None:
    result = run("dlq", "list")
    assert result.exit_code == 0
    assert "there are no dead-letter topics" in result.stderr


def test_show_tells_all_of_a_letter(letters: None, run: Run) -> None:
    shown = run("dlq", "show", "dlq.orders", "-n", "1").stdout.splitlines()
    assert shown[0].startswith("dlq.orders-0@0  2")
    assert [line.strip() for line in shown[1:]] == [
        "from    orders-1@0, share group billing, 5 deliveries",
        "reason  Offset rejected by client.",
        "key     k0",
        "value   v0",
        "header  trace=0",
        "header  empty=null",
    ]
    line = json.loads(run("dlq", "show", "dlq.orders", "-o", "8", "--json").stdout)
    assert (line["offset"], line["key"], line["value"], line["headers"]) == (8, "k8", "v8", [])
    assert line["origin"] == {
        "kind": "share", "topic": "orders", "partition": 1, "offset": 8, "group": "billing",
        "delivery_count": 5, "reason": "Offset delivery count exceeded the threshold.",
    }  # fmt: skip
    assert line["sent_back"] is False
    assert run("dlq", "show", "dlq.orders", "-f", "%o=%s ", "-o", "3-4").stdout == "3=v3 4=v4 "


@pytest.mark.parametrize(
    ("filters", "values"),
    [
        (["--group", "daily"], "p0 p1"),
        (["--reason", "EXCEEDED"], "v8 v9"),
        (["--from-topic", "orders", "--limit", "2"], "v0 v1"),
        (["--from-partition", "0"], "p0 p1"),
        (["--from-topic", "nothing"], ""),
        (["--offset", "2-3", "--partition", "0"], "v2 v3"),
        (["--since", "1h", "--until", "now", "--group", "daily"], "p0 p1"),
        (["--since", "now"], ""),
        (["--until", "1h"], ""),
    ],
)
def test_filters_choose_letters(letters: None, run: Run, filters: list[str], values: str) -> None:
    result = run("dlq", "show", "dlq.orders", "-f", "%s ", *filters)
    assert result.stdout.split() == values.split()
    assert result.exit_code == 0


def test_replay_sends_letters_back_as_they_were_and_once(
    letters: None, broker: KafkaBroker, run: Run
) -> None:
    dry = run("dlq", "replay", "dlq.orders", "--dry-run")
    assert dry.stdout == "12 records would be sent to orders\n"
    assert read(broker, "orders") == []
    assert run("dlq", "replay", "dlq.orders", "--reason", "exceeded", "--json").json == {
        "topic": "dlq.orders",
        "dry_run": False,
        "sent": [{"topic": "orders", "records": 2}],
        "not_sent": [],
    }
    assert run("dlq", "replay", "dlq.orders", "--limit", "1").stdout == "1 record sent to orders\n"
    assert run("dlq", "replay", "dlq.orders").stdout == "9 records sent to orders\n"
    again = run("dlq", "replay", "dlq.orders")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "nothing in dlq.orders is left to be sent back" in again.stderr
    pipeline: list[tuple[Any, ...]] = [(0, None, b"p%d" % n, []) for n in range(2)]
    rejected = [(1, b"k%d" % n, b"v%d" % n, [("trace", b"%d" % n), ("empty", None)]) for n in range(8)]
    expired: list[tuple[Any, ...]] = [(1, b"k%d" % n, b"v%d" % n, []) for n in (8, 9)]
    assert read(broker, "orders") == [*pipeline, *rejected, *expired]
    (topic,) = run("dlq", "list", "--json").json
    assert [each["sent_back"] for each in topic["causes"]] == [8, 2, 2]
    assert ", sent back" in run("dlq", "show", "dlq.orders", "-n", "1").stdout
    write(broker, "dlq.orders", [{"value": b"new", "headers": share_headers(77)}])
    assert run("dlq", "replay", "dlq.orders").stdout == "1 record sent to orders\n"


def test_replay_to_another_topic_lets_keys_decide(letters: None, broker: KafkaBroker, run: Run) -> None:
    run("topic", "create", "fixed", "-p", "3")
    assert run("dlq", "replay", "dlq.orders", "--to", "fixed", "--rate", "1000").exit_code == 0
    found = read(broker, "fixed")
    assert sorted(value for _, _, value, _ in found) == sorted(
        [b"p0", b"p1", *(b"v%d" % n for n in range(10))]
    )
    assert len({partition for partition, key, _, _ in found if key is not None}) > 1
    assert read(broker, "orders") == []


def test_what_cannot_go_back_is_told_and_the_rest_goes(broker: KafkaBroker, run: Run) -> None:
    run("topic", "create", "orders", "-p", "2")
    write(
        broker,
        "dlq.mixed",
        [
            {"value": b"gone", "headers": share_headers(0, topic="deleted")},
            {"value": b"shrunk", "headers": share_headers(1, partition="7")},
            {"value": b"unknown"},
            {"value": b"good", "headers": share_headers(2)},
        ],
    )
    result = run("dlq", "replay", "dlq.mixed")
    assert result.exit_code == 1
    assert result.stdout == "1 record sent to orders\n"
    assert "dlq.mixed-0@0 not sent: there is no topic deleted" in result.stderr
    assert "dlq.mixed-0@1 not sent: topic orders has no partition 7: --by-key" in result.stderr
    assert "dlq.mixed-0@2 not sent: its headers do not tell" in result.stderr
    assert [value for _, _, value, _ in read(broker, "orders")] == [b"good"]
    assert "deleted" not in run("topic", "list").stdout.split()
    result = run("dlq", "replay", "dlq.mixed", "--by-key", "--offset", "1")
    assert (result.exit_code, result.stdout) == (0, "1 record sent to orders\n")


def test_a_letter_without_a_copy_is_looked_up_where_it_came_from(broker: KafkaBroker, run: Run) -> None:
    run("topic", "create", "orders", "-p", "2")
    write(
        broker,
        "orders",
        [{"key": b"k", "value": b"v%d" % n, "partition": 1, "headers": [("h", b"1")]} for n in range(3)],
    )
    run("topic", "trim", "orders", "-p", "1", "-o", "1")
    write(broker, "dlq.bare", [{"headers": share_headers(n)} for n in (0, 2)])
    result = run("dlq", "replay", "dlq.bare")
    assert result.exit_code == 1
    assert "the record was not copied, and orders-1@0 is gone" in result.stderr
    assert [value for _, _, value, _ in read(broker, "orders")] == [b"v1", b"v2", b"v2"]


def test_a_topic_made_anew_is_sent_back_anew(letters: None, broker: KafkaBroker, run: Run) -> None:
    run("dlq", "replay", "dlq.orders")
    run("topic", "delete", "dlq.orders")
    run("topic", "create", "dlq.orders")
    write(broker, "dlq.orders", [{"value": b"again", "headers": share_headers(1)}])
    assert run("dlq", "replay", "dlq.orders").stdout == "1 record sent to orders\n"


def test_purge_deletes_what_was_sent_back(letters: None, run: Run) -> None:
    run("dlq", "replay", "dlq.orders", "--offset", "0-4")
    run("dlq", "replay", "dlq.orders", "--offset", "6")
    result = run("dlq", "purge", "dlq.orders", "--replayed", "--yes", "--json")
    assert result.json == [{"partition": 0, "deleted": 5, "log_start_offset": 5}]
    assert run("dlq", "purge", "dlq.orders", "-o", "7", "--yes", "--json").json[0]["deleted"] == 2
    assert run("dlq", "purge", "dlq.orders", "--before", "1h", "--yes", "--json").json[0]["deleted"] == 0
    assert run("dlq", "purge", "dlq.orders", "--all", "--yes", "--json").json[0]["log_start_offset"] == 12
    assert run("dlq", "show", "dlq.orders").stdout == ""


def test_purge_asks(letters: None, run: Run) -> None:
    result = run("dlq", "purge", "dlq.orders", "--all")
    assert result.exit_code == 2
    assert "this deletes 12 offsets of dlq.orders: write --yes if that is meant" in result.stderr
    assert len(run("dlq", "show", "dlq.orders", "--json").stdout.splitlines()) == 12


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        (["show", "missing"], "UNKNOWN_TOPIC_OR_PARTITION", 1),
        (["replay", "missing"], "UNKNOWN_TOPIC_OR_PARTITION", 1),
        (["purge", "missing", "--all"], "UNKNOWN_TOPIC_OR_PARTITION", 1),
        (["list", "missing"], "UNKNOWN_TOPIC_OR_PARTITION", 1),
        (["list", "missing*"], "no topic matches", 1),
        (["show", "orders", "-p", "9"], "has no partition 9", 2),
        (["purge", "orders", "-p", "9", "--all"], "has no partition 9", 1),
        (["show", "orders", "-o", "x"], "write an offset such as 17", 2),
        (["replay", "orders", "--rate", "0"], "write a number above 0", 2),
        (["purge", "orders"], "one of the arguments", 2),
        (["show", "orders", "--resaon", "x"], "did you mean --reason?", 2),
        (["shwo", "orders"], "did you mean show?", 2),
        (["show", "orders", "--json", "-f", "%s"], "exclude each other", 2),
        (["show", "orders", "-f", "%z"], "is no field of a format", 1),
    ],
)
def test_mistakes_are_explained(run: Run, command: list[str], said: str, code: int) -> None:
    run("topic", "create", "orders")
    result = run("dlq", *command)
    assert said in result.stderr
    assert result.exit_code == code


@pytest.mark.parametrize(
    ("operation", "resource", "said"),
    [
        (
            "Write",
            ("--transactional-id", "kbroker-dlq-replay-dlq.orders"),
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ),
        (
            "Create",
            ("--cluster", "--topic", "dlq.orders.replayed"),
            "topic dlq.orders.replayed, which is to tell what was sent back",
        ),
        ("Write", ("--topic", "orders"), "TOPIC_AUTHORIZATION_FAILED"),
        ("All", ("--topic", "orders"), "there is no topic orders, or none that you may see"),
        ("Read", ("--topic", "dlq.orders"), "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_rights_that_are_missing_are_told_and_nothing_is_sent(
    operation: str,
    resource: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    settings = {"authorizer.class.name": "kbroker", "allow.everyone.if.no.acl.found": "true"}
    with KafkaBroker(configs=settings) as guarded:
        run = request.getfixturevalue("run")
        monkeypatch.setenv("KBROKER_BOOTSTRAP", guarded.bootstrap_servers)
        run("topic", "create", "orders", "-p", "2")
        write(guarded, "dlq.orders", [{"value": b"v", "headers": share_headers(1)}])
        run("acl", "add", "--allow-principal", "User:ANONYMOUS", "--operation", "All", *resource)
        run("acl", "add", "--deny-principal", "User:ANONYMOUS", "--operation", operation, *resource)
        result = run("dlq", "replay", "dlq.orders")
        assert said in result.stderr
        assert result.exit_code == 1
        run("acl", "remove", "--yes")
        assert run("dlq", "replay", "dlq.orders").stdout == "1 record sent to orders\n"
        assert [value for _, _, value, _ in read(guarded, "orders")] == [b"v"]
