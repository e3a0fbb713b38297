"""The log says the same some times, then how often it did not."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kbroker.observability.log_limit import LINES, SECONDS, LogLimit
from kbroker.observability.log_lines import TextFormatter


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.lines: list[str] = []
        self.limit = LogLimit(lambda: self.now, self.emit)
        self.addFilter(self.limit)
        self.setFormatter(TextFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record).split(": ", 1)[1])


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    for name in ("test", "kbroker.errors"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield handler
    for name in ("test", "kbroker.errors"):
        logging.getLogger(name).removeHandler(handler)
        logging.getLogger(name).setLevel(logging.NOTSET)


logger = logging.getLogger("test")


def refuse(number: int, peer: str = "10.0.0.1", text: str = "closing %s: %d") -> None:
    logger.warning(text, peer, number, extra={"peer": peer})


def test_what_comes_a_thousand_times_is_told_some_times_and_counted(lines: Lines) -> None:
    for number in range(1000):
        refuse(number)
    assert lines.lines == [f"closing 10.0.0.1: {number}" for number in range(LINES)]
    lines.now += SECONDS
    refuse(1000)
    assert lines.lines[LINES:] == [
        "900 lines like this one were left out in 10 s, the last: closing 10.0.0.1: 999",
        "closing 10.0.0.1: 1000",
    ]


def test_what_was_left_out_is_told_if_nothing_more_comes(lines: Lines) -> None:
    for number in range(LINES + 5):
        refuse(number)
    lines.limit.sweep()
    assert len(lines.lines) == LINES
    lines.now += SECONDS
    lines.limit.sweep()
    lines.limit.sweep()
    assert lines.lines[LINES:] == [
        "5 lines like this one were left out in 10 s, the last: closing 10.0.0.1: 104"
    ]


def test_one_client_hides_nothing_of_another_nor_of_itself(lines: Lines) -> None:
    for number in range(1000):
        refuse(number)
    refuse(1, peer="10.0.0.2")
    refuse(1, text="other: %s %d")
    assert lines.lines[LINES:] == ["closing 10.0.0.2: 1", "other: 10.0.0.1 1"]


def test_what_is_no_clients_doing_all_stands(lines: Lines) -> None:
    for number in range(1000):
        logger.error("offset %d is gone", number)
    assert len(lines.lines) == 1000


def test_what_is_for_debugging_all_stands(lines: Lines) -> None:
    for number in range(1000):
        logger.debug("request %d", number, extra={"peer": "10.0.0.1"})
    assert len(lines.lines) == 1000


def test_errors_are_told_apart_by_where_they_were_raised(lines: Lines) -> None:
    def first() -> None:
        raise ValueError

    def second() -> None:
        raise ValueError

    for _ in range(2 * LINES):
        for function in (first, second):
            try:
                function()
            except ValueError:
                logging.getLogger("kbroker.errors").exception("an unforeseen error")
    assert len(lines.lines) == 2 * LINES


def test_a_million_addresses_take_no_more_memory_than_a_thousand(lines: Lines) -> None:
    for number in range(5000):
        refuse(number, peer=f"10.0.{number // 256}.{number % 256}")
    assert len(lines.limit._windows) <= 1001


def test_what_a_client_chose_does_not_break_a_line(lines: Lines) -> None:
    refuse(1, peer="a\r\nb\x1b[2J\u2028")
    assert lines.lines == ["closing a\\x0d\\x0ab\\x1b[2J\\x2028: 1"]


def test_ids_stand_behind_the_text(lines: Lines) -> None:
    logger.warning("it failed", extra={"connection": 7, "request": "a\nb", "peer": "10.0.0.1"})
    assert lines.lines == ["it failed [connection 7 request a\\x0ab]"]
