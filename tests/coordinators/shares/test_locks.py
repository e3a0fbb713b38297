"""Locks that run out, sessions that end, back-offs, and changes that wait for the store."""

from __future__ import annotations

import pytest

from kbroker.coordinators.shares.partition import Dead, InvalidRecordState
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import RecordState, Run
from tests.coordinators.shares.driver import ACCEPT, LOCK_MS, REJECT, RELEASE, RENEW, Driver

TENS = [(first, first + 9) for first in range(0, 100, 10)]


@pytest.fixture
def driver() -> Driver:
    """0 to 9 are acquired by a, 10 to 19 by b."""
    driver = Driver(TENS)
    driver.fetch("a", 10)
    driver.fetch("b", 10)
    return driver


# locks


def test_a_lock_that_runs_out_makes_its_records_available(driver: Driver) -> None:
    driver.acknowledge((3, 3, ACCEPT))
    assert driver.wait(LOCK_MS - 1) is None
    driver.wait(1)
    assert driver.woken == 1
    assert driver.fetch("c", 19) == [(0, 2, 2), (4, 9, 2), (10, 19, 2)]
    with pytest.raises(InvalidRecordState):
        driver.acknowledge((0, 0, ACCEPT))


def test_a_lock_that_runs_out_at_the_limit_archives() -> None:
    driver = Driver([(0, 9)], settings=ShareSettings(delivery_count_limit=2))
    driver.fetch()
    driver.wait(LOCK_MS)
    driver.fetch()
    change = driver.wait(LOCK_MS)
    assert change is not None
    assert change.dead == [Dead(0, 9, 2, "limit")]
    assert driver.window == (10, 9)


def test_a_changed_limit_counts_at_once(driver: Driver) -> None:
    driver.settings = ShareSettings(delivery_count_limit=1)
    driver.wait(LOCK_MS)
    assert driver.window == (20, 19)


def test_locks_of_finished_records_are_forgotten() -> None:
    driver = Driver([(offset, offset) for offset in range(1000)])
    for offset in range(1000):
        driver.fetch(max_records=1)
        driver.now_ms += 1
        if offset:
            driver.acknowledge((offset, offset, ACCEPT))
    assert len(driver.partition._leases._heap) < 70
    driver.wait(LOCK_MS)
    assert driver.partition.next_deadline() is None
    assert driver.partition.next_fetch_offset() == 0


# sessions


def test_the_end_of_a_session_releases_what_the_member_holds(driver: Driver) -> None:
    driver.acknowledge((2, 3, ACCEPT))
    driver.release("a")
    assert driver.fetch("b", 8) == [(0, 1, 2), (4, 9, 2)]
    assert driver.release("nobody") is None
    driver.acknowledge((0, 1, ACCEPT), (4, 19, ACCEPT), member="b")
    assert driver.window == (20, 19)


def test_the_end_of_a_session_archives_at_the_limit() -> None:
    driver = Driver([(0, 9)], settings=ShareSettings(delivery_count_limit=2))
    for _ in range(2):
        driver.fetch()
        change = driver.release()
    assert change is not None
    assert change.dead == [Dead(0, 9, 2, "limit")]
    assert driver.window == (10, 9)


# back-offs

BACK_OFF = ShareSettings(retry_backoff_ms=100, retry_backoff_multiplier=3.0, retry_backoff_max_ms=500)


def test_a_released_record_comes_back_after_its_back_off_which_grows() -> None:
    driver = Driver([(0, 0)], settings=BACK_OFF)
    for back_off_ms in (100, 300, 500, 500):
        assert driver.fetch()
        driver.acknowledge((0, 0, RELEASE))
        woken = driver.woken
        assert driver.partition.next_fetch_offset() == 1
        assert driver.partition.next_deadline() == driver.now_ms + back_off_ms
        driver.wait(back_off_ms - 1)
        assert driver.fetch() == []
        driver.wait(1)
        assert driver.woken == woken + 1
        assert driver.partition.next_fetch_offset() == 0


def test_records_of_different_counts_back_off_apart() -> None:
    driver = Driver([(0, 9)], settings=BACK_OFF)
    driver.fetch()
    driver.acknowledge((0, 4, RELEASE))
    driver.wait(100)
    driver.fetch()
    driver.acknowledge((0, 2, RELEASE), (3, 3, ACCEPT), (4, 9, RELEASE))
    driver.wait(100)
    assert driver.fetch() == [(5, 9, 2)]
    driver.wait(200)
    assert driver.fetch() == [(0, 2, 3), (4, 4, 3)]


def test_lock_timeouts_and_ends_of_sessions_do_not_back_off() -> None:
    driver = Driver([(0, 9)], settings=BACK_OFF)
    driver.fetch()
    driver.release()
    assert driver.fetch() == [(0, 9, 2)]
    driver.wait(LOCK_MS)
    assert driver.fetch()


def test_no_back_off_outlives_a_restart() -> None:
    driver = Driver([(0, 9)], settings=BACK_OFF)
    driver.fetch()
    driver.acknowledge((0, 9, RELEASE))
    assert driver.fetch() == []
    driver.restart()
    assert driver.fetch() == [(0, 9, 2)]


def test_a_back_off_that_is_over_when_the_release_is_stored_is_over() -> None:
    driver = Driver([(0, 9)], settings=BACK_OFF)
    driver.fetch()
    driver.settles = False
    change = driver.acknowledge((0, 9, RELEASE))
    assert change is not None
    driver.now_ms += 100
    driver.settle(change)
    assert driver.woken == 1
    assert driver.fetch() == [(0, 9, 2)]


def test_a_back_off_without_an_end_does_not_overflow() -> None:
    settings = ShareSettings(retry_backoff_ms=1000, retry_backoff_multiplier=1e300, delivery_count_limit=25)
    driver = Driver([(0, 0)], settings=settings)
    for _ in range(3):
        driver.fetch()
        driver.acknowledge((0, 0, RELEASE))
        driver.wait((driver.partition.next_deadline() or 0) - driver.now_ms)
    assert driver.fetch() == [(0, 0, 4)]


# the store


def test_settling_records_are_in_nobody_s_hands(driver: Driver) -> None:
    driver.settles = False
    change = driver.acknowledge((0, 4, ACCEPT), (5, 9, RELEASE))
    assert change is not None
    assert driver.window == (0, 19)
    assert driver.partition.next_fetch_offset() == 20
    assert driver.release("a") is None
    for kind in (ACCEPT, RENEW):
        with pytest.raises(InvalidRecordState):
            driver.acknowledge((0, 0, kind))
    assert list(driver.partition.state().runs) == []
    driver.settle(change)
    assert driver.window == (5, 19)
    assert driver.fetch("b", 1) == [(5, 9, 2)]


def test_a_change_that_is_not_stored_leaves_the_records_with_their_member(driver: Driver) -> None:
    driver.settles = False
    change = driver.acknowledge((0, 4, ACCEPT), (5, 9, RELEASE))
    assert change is not None
    driver.settle(change, stored=False)
    assert not driver.woken
    assert driver.partition.next_fetch_offset() == 20
    driver.settles = True
    driver.acknowledge((0, 9, ACCEPT))
    assert driver.window == (10, 19)


@pytest.mark.parametrize("told", [True, False])
def test_a_change_that_is_not_stored_before_the_lock_runs_out_releases(driver: Driver, told: bool) -> None:
    """Whether or not `expire` was called meanwhile."""
    driver.settles = False
    change = driver.acknowledge((0, 9, ACCEPT))
    assert change is not None
    driver.now_ms += LOCK_MS
    if told:
        expired = driver.partition.expire(driver.now_ms)
        assert expired is not None
        assert expired.state is not None
        assert expired.state.runs == [Run(10, 19, RecordState.AVAILABLE, 1)]
    driver.settle(change, stored=False)
    assert driver.woken == 1
    driver.settles = True
    assert driver.fetch("c", 10)[0] == (0, 9, 2)


def test_a_lock_that_runs_out_while_the_change_is_stored_does_not_matter(driver: Driver) -> None:
    driver.settles = False
    change = driver.acknowledge((0, 9, ACCEPT))
    assert change is not None
    driver.wait(LOCK_MS)
    driver.settle(change)
    assert driver.window == (10, 19)


def test_archiving_at_the_limit_is_tried_again_until_it_is_stored() -> None:
    driver = Driver([(0, 9)], settings=ShareSettings(delivery_count_limit=2))
    driver.fetch()
    driver.release()
    driver.fetch()
    driver.settles = False
    for _ in range(3):
        deadline = driver.partition.next_deadline()
        assert deadline is not None
        driver.now_ms = deadline
        change = driver.partition.expire(deadline)
        assert change is not None
        assert change.dead == [Dead(0, 9, 2, "limit")]
        driver.settle(change, stored=False)
        assert driver.partition.next_fetch_offset() == 10
    driver.settles = True
    driver.wait(1_000)
    assert driver.window == (10, 9)


def test_changes_settle_in_any_order(driver: Driver) -> None:
    driver.settles = False
    first, second = driver.acknowledge((0, 4, ACCEPT)), driver.acknowledge((5, 9, REJECT))
    assert first is not None
    assert second is not None
    driver.settle(second)
    assert driver.window == (0, 19)
    driver.settle(first)
    assert driver.window == (10, 19)
    assert [change.start_offset for change in driver.written] == [0, 0]
