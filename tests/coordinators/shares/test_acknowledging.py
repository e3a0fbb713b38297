"""Acknowledgements of records of a share partition: what they change, and which are refused with what."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kbroker.coordinators.shares.partition import Dead, InvalidAcknowledgement, InvalidRecordState
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange
from tests.coordinators.shares.driver import (
    ACCEPT,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    Driver,
)

AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
TENS = [(first, first + 9) for first in range(0, 100, 10)]


@pytest.fixture
def driver() -> Driver:
    """0 to 9 and 10 to 19 are acquired by a, 20 to 29 by b."""
    driver = Driver(TENS)
    driver.fetch("a", 20, batch_size=10)
    driver.fetch("b", 10)
    return driver


def test_accepted_records_are_stored_and_the_start_offset_passes_them(driver: Driver) -> None:
    driver.acknowledge((0, 9, ACCEPT))
    assert driver.written == [ShareStateChange(0, [Run(0, 9, ACKNOWLEDGED, 1)])]
    assert driver.window == (10, 29)
    assert not driver.woken


def test_the_window_is_empty_when_all_is_done(driver: Driver) -> None:
    driver.acknowledge((0, 9, ACCEPT), (10, 19, REJECT))
    driver.acknowledge((20, 29, GAP), member="b")
    assert driver.window == (30, 29)
    assert driver.partition.next_fetch_offset() == 30
    assert driver.partition.next_deadline() is None


def test_each_record_may_have_its_own_type(driver: Driver) -> None:
    driver.acknowledge((0, 4, [ACCEPT, REJECT, RELEASE, ACCEPT, REJECT]))
    assert driver.written[-1].runs == [
        Run(0, 0, ACKNOWLEDGED, 1),
        Run(1, 1, ARCHIVED, 1),
        Run(2, 2, AVAILABLE, 1),
        Run(3, 3, ACKNOWLEDGED, 1),
        Run(4, 4, ARCHIVED, 1),
    ]
    assert driver.window == (2, 29)
    assert driver.fetch("c", 1) == [(2, 2, 2)]


def test_one_range_may_go_over_several_in_flight_batches(driver: Driver) -> None:
    driver.acknowledge((5, 15, ACCEPT))
    assert driver.written[-1].runs == [Run(5, 15, ACKNOWLEDGED, 1)]


def test_a_release_wakes_who_waits(driver: Driver) -> None:
    driver.acknowledge((5, 5, RELEASE))
    assert driver.woken == 1
    assert driver.partition.next_fetch_offset() == 5


@pytest.mark.parametrize("kind", [RELEASE, REJECT])
def test_what_is_given_up_is_named_with_its_reason(kind: int) -> None:
    driver = Driver([(0, 9)], settings=ShareSettings(delivery_count_limit=2))
    driver.fetch()
    driver.release()
    driver.fetch()
    change = driver.acknowledge((0, 3, kind), (4, 5, GAP), (6, 9, ACCEPT))
    assert change is not None
    assert change.dead == [Dead(0, 3, 2, "limit" if kind == RELEASE else "reject")]
    assert driver.written[-1].runs == [Run(0, 5, ARCHIVED, 2), Run(6, 9, ACKNOWLEDGED, 2)]


@pytest.mark.parametrize(
    "ranges",
    [
        [(5, 4, ACCEPT)],
        [(5, 9, ACCEPT), (4, 6, ACCEPT)],
        [(0, 9, [])],
        [(0, 9, [ACCEPT, ACCEPT])],
        [(0, 9, 5)],
        [(0, 9, -1)],
        [(0, 1, [ACCEPT, 5])],
        [(0, 30, ACCEPT)],
        [(30, 30, ACCEPT)],
        [(40, 45, ACCEPT)],
        # The form of all is looked at before the records of any.
        [(20, 29, ACCEPT), (28, 29, ACCEPT)],
        [(20, 29, ACCEPT), (31, 30, ACCEPT)],
        # The first that is wrong counts.
        [(0, 9, ACCEPT), (40, 49, ACCEPT), (50, 59, 1)],
    ],
)
def test_an_invalid_request_changes_nothing(driver: Driver, ranges: Sequence[tuple[int, int, int]]) -> None:
    before = driver.partition.state()
    with pytest.raises(InvalidAcknowledgement):
        driver.acknowledge(*ranges)
    assert driver.partition.state() == before
    driver.acknowledge((0, 19, ACCEPT))


@pytest.mark.parametrize(
    "ranges",
    [
        [(20, 29, ACCEPT)],
        [(15, 25, ACCEPT)],
        [(0, 9, ACCEPT), (10, 20, ACCEPT)],
        [(0, 9, ACCEPT), (9, 12, ACCEPT)],
        [(0, 5, REJECT), (5, 5, RELEASE)],
        [(0, 9, RENEW), (20, 29, ACCEPT)],
        # The first that is wrong counts.
        [(20, 29, ACCEPT), (40, 49, ACCEPT)],
    ],
)
def test_records_that_the_member_has_not_change_nothing(
    driver: Driver, ranges: Sequence[tuple[int, int, int]]
) -> None:
    deadline = driver.partition.next_deadline()
    driver.now_ms += 1
    with pytest.raises(InvalidRecordState):
        driver.acknowledge(*ranges)
    assert driver.partition.next_deadline() == deadline
    driver.acknowledge((0, 19, ACCEPT))
    driver.acknowledge((20, 29, ACCEPT), member="b")


def test_a_record_is_acknowledged_once(driver: Driver) -> None:
    driver.acknowledge((3, 5, ACCEPT))
    for kind in (ACCEPT, RELEASE, REJECT, GAP, RENEW):
        with pytest.raises(InvalidRecordState):
            driver.acknowledge((5, 5, kind))


def test_a_released_record_is_nobody_s(driver: Driver) -> None:
    driver.acknowledge((0, 9, RELEASE))
    with pytest.raises(InvalidRecordState):
        driver.acknowledge((0, 9, ACCEPT))


def test_offsets_below_the_start_offset_are_ignored(driver: Driver) -> None:
    driver.acknowledge((0, 14, ACCEPT))
    assert driver.acknowledge((0, 9, ACCEPT)) is None
    assert driver.acknowledge((0, 0, RENEW), member="z") is None
    driver.acknowledge((5, 19, ACCEPT))
    assert driver.window == (20, 29)
    driver.acknowledge((10, 20, [9 % 5] * 10 + [ACCEPT]), member="b")
    assert driver.window == (21, 29)


def test_nothing_in_flight_is_not_past_what_is_in_flight() -> None:
    driver = Driver(TENS)
    with pytest.raises(InvalidRecordState):
        driver.acknowledge((0, 5, ACCEPT))
    driver.fetch("a", 10)
    driver.acknowledge((0, 9, ACCEPT))
    with pytest.raises(InvalidRecordState):
        driver.acknowledge((10, 10, ACCEPT))
    assert driver.acknowledge((0, 9, ACCEPT)) is None


def test_a_renewed_lock_lasts_from_now_on_and_is_not_stored(driver: Driver) -> None:
    driver.now_ms += 20_000
    assert driver.acknowledge((0, 4, RENEW), (5, 5, ACCEPT)) is not None
    assert driver.acknowledge((10, 19, RENEW)) is None
    assert driver.written == [ShareStateChange(0, [Run(5, 5, ACKNOWLEDGED, 1)])]
    driver.wait(10_000)
    assert driver.partition.next_fetch_offset() == 6
    assert driver.fetch("b", 100) == [(6, 9, 2), (20, 29, 2), (30, 99, 1)]
    driver.acknowledge((0, 4, ACCEPT), (10, 19, ACCEPT))
    assert driver.wait(20_000) is None
    assert driver.window == (6, 99)


def test_a_renewed_record_may_be_renewed_again(driver: Driver) -> None:
    for _ in range(5):
        driver.wait(LOCK_MS - 1)
        driver.acknowledge((0, 19, RENEW))
    driver.wait(LOCK_MS)
    assert driver.fetch("c", 10) == [(0, 9, 2)]


def test_locks_are_not_renewed_where_that_is_switched_off(driver: Driver) -> None:
    driver.settings = ShareSettings(renew_acknowledge_enable=False)
    with pytest.raises(InvalidRecordState):
        driver.acknowledge((0, 9, RENEW))
    with pytest.raises(InvalidRecordState):
        driver.acknowledge((0, 1, [ACCEPT, RENEW]))
    assert not driver.written


def test_the_state_names_what_is_stored_and_not_what_is_acquired(driver: Driver) -> None:
    driver.acknowledge((0, 4, RELEASE), (12, 13, ACCEPT), (15, 19, REJECT))
    driver.fetch("c", 1)
    assert driver.partition.state() == ShareState(
        0, [Run(0, 4, AVAILABLE, 1), Run(12, 13, ACKNOWLEDGED, 1), Run(15, 19, ARCHIVED, 1)]
    )
    assert driver.stored == driver.partition.state()._replace(runs=tuple(driver.partition.state().runs))
