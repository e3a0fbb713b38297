from __future__ import annotations

import pytest

from kbroker.pipeline.failures import explain, refusal


@pytest.mark.parametrize(
    ("said", "expected", "may_pass"),
    [
        ("… java.io.IOException: No space left on device", "the disk is full", True),
        ("org.apache.kafka.common.errors.TimeoutException: Timed out", "the broker does not answer", True),
        ("UnknownTopicOrPartitionException: This server does not host", "a topic is missing", False),
        ("… set the source option 'failOnDataLoss' to 'false'", "gone from the topic", False),
        ("A schema mismatch detected when writing to the Delta table", "no longer fit the table", False),
        ("[DELTA_CONCURRENT_APPEND] …", "another writer", True),
        ("Caused by: java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory: 4g", False),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "for the reason that stands above", False),
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
    called = "An error occurred while calling o1.save.\n: java.lang.Odd: this\n\tat x"
    assert explain(called).message == "java.lang.Odd: this"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `amout` "
            "cannot be resolved. Did you mean one of the following? [`amount`, `__record`, `id`]. "
            "SQLSTATE: 42703; line 1 pos 7;\n'Project ['amout]\n+- Relation",
            "there is no column `amout`; there are `amount`, `id`",
        ),
        (
            "[UNRESOLVED_ROUTINE] Cannot resolve routine `upperr` on search path [`a`]. SQLSTATE: 42883",
            "there is no function `upperr`",
        ),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'FORM'. SQLSTATE: 42601 (line 1, pos 9)\n\n==",
            "Spark refuses it: Syntax error at or near 'FORM'. (line 1, pos 9)",
        ),
    ],
)
def test_a_refused_query_is_told_in_a_line(said: str, expected: str) -> None:
    assert refusal(Exception(said)) == expected
