"""Readiness: each check for itself, and what is asked often, or hangs."""

from __future__ import annotations

import pytest

from kbroker.observability.health import LONGEST_MS, Health
from kbroker.pending import Pending
from kbroker.storage.errors import DiskFull
from kbroker.storage.memory import MemoryDirectory
from tests.support.timed_cluster import TimedCluster

WELL = {"recovered": None, "catalog": None, "disk": None, "draining": None}


class SlowDisk(MemoryDirectory):
    """One whose answers a test gives."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Pending[None]] = []

    def check_writable(self) -> Pending[None]:
        self.asked.append(Pending())
        return self.asked[-1]


class SlowCluster(TimedCluster):
    def __init__(self) -> None:
        self.disk = SlowDisk()
        super().__init__()

    def start(self):  # type: ignore[no-untyped-def]
        self.logs = self.disk
        return super().start()


@pytest.fixture
def slow() -> SlowCluster:
    return SlowCluster()


def health(cluster: TimedCluster) -> Health:
    return cluster.broker.health


def test_a_broker_that_runs_is_ready() -> None:
    cluster = TimedCluster()
    assert health(cluster).readiness().result() == WELL


def test_one_that_stops_is_not() -> None:
    cluster = TimedCluster()
    health(cluster).draining = True
    assert health(cluster).readiness().result() == {**WELL, "draining": "the broker is stopping"}


def test_one_whose_logs_take_nothing_is_not() -> None:
    cluster = TimedCluster()
    cluster.logs.hold_appends(DiskFull("no room"))
    assert health(cluster).readiness().result() == {**WELL, "recovered": "no log takes records: no room"}
    cluster.logs.hold_appends(None)
    assert health(cluster).readiness().result() == WELL


def test_all_who_ask_at_a_time_wait_for_one_look(slow: SlowCluster) -> None:
    answers = [health(slow).readiness() for _ in range(100)]
    assert len(slow.disk.asked) == 1
    assert not any(answer.done for answer in answers)
    slow.disk.asked[0].fail(OSError(28, "No space left on device"))
    problem = {**WELL, "disk": "it cannot be written: No space left on device"}
    assert [answer.result() for answer in answers] == [problem] * 100


def test_what_was_seen_counts_for_a_moment(slow: SlowCluster) -> None:
    first = health(slow).readiness()
    slow.disk.asked[0].resolve(None)
    assert first.result() == WELL
    slow.scheduler.pass_ms(999)
    assert health(slow).readiness().result() == WELL
    assert len(slow.disk.asked) == 1
    slow.scheduler.pass_ms(1)
    assert not health(slow).readiness().done
    assert len(slow.disk.asked) == 2


def test_a_disk_that_hangs_is_told_in_time_and_not_asked_again(slow: SlowCluster) -> None:
    answer = health(slow).readiness()
    slow.scheduler.pass_ms(LONGEST_MS)
    assert answer.result() == {**WELL, "disk": "no answer for 2000 ms"}
    for _ in range(10):
        later = health(slow).readiness()
        slow.scheduler.pass_ms(LONGEST_MS)
        assert later.result()["disk"] is not None
    assert len(slow.disk.asked) == 1
    last = health(slow).readiness()
    slow.disk.asked[0].resolve(None)
    assert last.result() == WELL


def test_one_who_went_away_takes_nothing_from_others(slow: SlowCluster) -> None:
    gone, stays = health(slow).readiness(), health(slow).readiness()
    gone.abandon()
    slow.disk.asked[0].resolve(None)
    assert stays.result() == WELL
