from __future__ import annotations

import pytest

from kbroker.pipeline.failures import explain


@pytest.mark.parametrize(
    ("said", "expected", "may_pass"),
    [
        ("… java.io.IOException: No space left on device", "the disk is full", True),
        ("org.apache.kafka.common.errors.TimeoutException: Timed out", "the broker does not answer", True),
        ("UnknownTopicOrPartitionException: This server does not host", "a topic is missing", False),
        ("… set the source option 'failOnDataLoss' to 'false'", "gone from the topic", False),
        ("A schema mismatch detected when writing to the Delta table", "no longer fit the table", False),
        ("[DELTA_CONCURRENT_APPEND] …", "another writer", True),
        ("RecordTooLargeException: 2000000 bytes", "RecordTooLargeException: 2000000 bytes", False),
        (
            "[USER_RAISED_EXCEPTION] kbroker-rejected: orders-0@7: amount > 0 SQLSTATE: P0001\n at x",
            "a record was rejected: orders-0@7: amount > 0. Give the source a dead_letter",
            False,
        ),
    ],
)
def test_what_people_meet_is_explained(said: str, expected: str, may_pass: bool) -> None:
    failure = explain(said)
    assert expected in failure.message
    assert failure.may_pass is may_pass


def test_a_plan_that_names_an_error_is_not_that_error() -> None:
    said = "Query terminated: Topic is odd\n=== Streaming Query ===\nLogical Plan: No space left on device"
    assert explain(said).message == "Query terminated: Topic is odd"


def test_the_unknown_is_told_by_its_last_cause() -> None:
    failure = explain("Job aborted\n\tat x\nCaused by: A: one\n\tat y\nCaused by: B: two SQLSTATE: 1\n")
    assert failure == ("B: two", False)
    assert explain("just this\n\tat x").message == "just this"
