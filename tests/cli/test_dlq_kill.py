"""kbroker dlq replay, killed again and again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from kbroker.testing import KafkaBroker
from tests.cli.conftest import Run
from tests.cli.test_dlq import read, share_headers, write
from tests.support.server_process import eventually

LETTERS = 1200
VALUES = sorted(b"v%d" % n for n in range(LETTERS))


@contextmanager
def replaying(broker: KafkaBroker, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kbroker", "dlq", "replay", "dlq.orders", "-b", broker.bootstrap_servers]
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def written(broker: KafkaBroker) -> int:
    """Records in orders, whether committed or not."""
    return len(broker.records("orders"))


def has_come_so_far(process: subprocess.Popen[str], broker: KafkaBroker, aim: int) -> bool:
    return process.poll() is not None or written(broker) >= aim


@pytest.fixture
def letters(broker: KafkaBroker, run: Run) -> None:
    run("topic", "create", "orders", "-p", "2")
    run("topic", "create", "dlq.orders", "-p", "3")
    write(
        broker,
        "dlq.orders",
        (
            {"value": b"v%d" % n, "partition": n % 3, "headers": share_headers(n, partition=str(n % 2))}
            for n in range(LETTERS)
        ),
    )


@pytest.mark.slow
def test_a_replay_that_is_killed_goes_on_where_it_was(letters: None, broker: KafkaBroker) -> None:
    chance = random.Random(17)
    kills = 0
    for more in (1, 90, 1, 200, 130, 1, 250):
        before = written(broker)
        with replaying(broker, "--rate", "800") as process:
            aim = before + more + chance.randrange(20)
            eventually(partial(has_come_so_far, process, broker, aim))
            kills += process.poll() is None
            process.kill()
    assert kills >= 5
    with replaying(broker) as process:
        assert process.wait(60) == 0
    assert sorted(value for _, _, value, _ in read(broker, "orders")) == VALUES


@pytest.mark.slow
def test_of_two_replays_the_second_takes_over(letters: None, broker: KafkaBroker) -> None:
    with replaying(broker, "--rate", "100") as first:
        eventually(lambda: written(broker) > 0)
        with replaying(broker) as second:
            assert second.wait(60) == 0
        assert first.wait(60) == 1
        assert first.stderr is not None
        assert "another replay of dlq.orders has begun" in first.stderr.read()
    assert sorted(value for _, _, value, _ in read(broker, "orders")) == VALUES
