"""Where a dead letter came from, by the headers of each writer."""

from __future__ import annotations

import pytest

from kbroker.dead_letters.origin import Origin, letter

SHARE = [
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"3"),
    ("__dlq.errors.offset", b"17"),
    ("__dlq.errors.group", b"billing"),
    ("__dlq.errors.delivery.count", b"5"),
    ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
]
CONNECT = [
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"3"),
    ("__connect.errors.offset", b"17"),
    ("__connect.errors.connector.name", b"sink"),
    ("__connect.errors.task.id", b"0"),
    ("__connect.errors.stage", b"VALUE_CONVERTER"),
    ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
    ("__connect.errors.exception.message", b"no JSON"),
    ("__connect.errors.exception.stacktrace", b"at \xff"),
]
STREAMS = [
    ("__streams.errors.exception", b"java.lang.IllegalArgumentException"),
    ("__streams.errors.stacktrace", b"at"),
    ("__streams.errors.topic", b"orders"),
    ("__streams.errors.partition", b"3"),
    ("__streams.errors.offset", b"17"),
]
PIPELINE = [
    ("kbroker.reason", b"amount > 0"),
    ("kbroker.pipeline", b"daily"),
    ("kbroker.source", b"orders"),
    ("kbroker.topic", b"orders"),
    ("kbroker.partition", b"3"),
    ("kbroker.offset", b"17"),
    ("kbroker.timestamp", b"1700000000000"),
]
OWN = [("trace", b"1"), ("kbroker.own", None)]


@pytest.mark.parametrize(
    ("added", "origin"),
    [
        (
            SHARE,
            Origin("share", "orders", 3, 17, "billing", 5, "Offset delivery count exceeded the threshold."),
        ),
        (CONNECT, Origin("connect", "orders", 3, 17, "sink", None, "no JSON")),
        (STREAMS, Origin("streams", "orders", 3, 17, None, None, "java.lang.IllegalArgumentException")),
        (PIPELINE, Origin("pipeline", "orders", 3, 17, "daily", None, "amount > 0")),
    ],
)
def test_headers_of_every_writer_are_read_and_taken_off(
    added: list[tuple[str, bytes]], origin: Origin
) -> None:
    found = letter([*OWN, *added])
    assert found is not None
    assert found.origin == origin
    assert found.headers == OWN


def test_headers_that_others_add_behind_stay() -> None:
    found = letter([*SHARE, ("trace", b"2")])
    assert found is not None
    assert found.headers == [("trace", b"2")]


def test_a_record_without_such_headers_is_no_dead_letter() -> None:
    assert letter(OWN) is None
    assert letter([]) is None


def test_a_record_that_died_twice_tells_of_the_last_time() -> None:
    again = [("__dlq.errors.topic", b"dlq.orders"), ("__dlq.errors.offset", b"2")]
    found = letter([*SHARE, *again])
    assert found is not None
    assert (found.origin.topic, found.origin.offset, found.origin.partition) == ("dlq.orders", 2, None)
    assert found.headers == SHARE
    found = letter([*CONNECT, *SHARE])
    assert found is not None
    assert found.origin.kind == "share"
    assert found.headers == CONNECT


def test_nonsense_in_numbers_is_no_number() -> None:
    found = letter(
        [("__dlq.errors.topic", b"t"), ("__dlq.errors.partition", b"x"), ("__dlq.errors.offset", None)]
    )
    assert found is not None
    assert found.origin == Origin("share", "t", None, None, None, None, None)
    assert found.origin.place == "t"
