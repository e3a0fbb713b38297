"""Which records of a share partition a member gets. Numbers are those seen on Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from kbroker.coordinators.shares.partition import AcquireMode, LogBatch
from kbroker.coordinators.shares.settings import ShareSettings
from tests.coordinators.shares.driver import ACCEPT, LOCK_MS, RELEASE, Driver, numbers

RECORD_LIMIT = AcquireMode.RECORD_LIMIT
TENS = [(first, first + 9) for first in range(0, 200, 10)]


def test_nothing_is_in_flight_at_first() -> None:
    driver = Driver(TENS)
    assert driver.window == (0, -1)
    assert driver.partition.next_fetch_offset() == 0
    assert driver.partition.next_deadline() is None


def test_new_records_come_up_to_the_end_of_the_log_batch_that_reaches_the_limit() -> None:
    driver = Driver(TENS)
    assert driver.fetch(max_records=5) == [(0, 9, 1)]
    assert driver.fetch(max_records=15) == [(10, 29, 1)]
    assert driver.partition.next_fetch_offset() == 30


def test_acquired_ranges_are_cut_where_a_log_batch_begins_once_they_are_large_enough() -> None:
    driver = Driver([(0, 3), (4, 7), (8, 11), (12, 15), (16, 19)])
    assert driver.fetch(max_records=100, batch_size=5) == [(0, 7, 1), (8, 15, 1), (16, 19, 1)]


def test_one_log_batch_is_not_cut() -> None:
    assert Driver([(0, 99)]).fetch(max_records=100, batch_size=5) == [(0, 99, 1)]


def test_a_log_batch_of_very_many_records_is_given_in_parts() -> None:
    driver = Driver([(0, 49_999)])
    seen: list[tuple[int, int, int]] = []
    while acquired := driver.fetch():
        seen += acquired
        driver.acknowledge(*((first, last, ACCEPT) for first, last, _ in acquired))
    assert seen == [(first, first + 9_999, 1) for first in range(0, 50_000, 10_000)]


def test_of_a_log_batch_of_very_many_records_few_are_available_to_others() -> None:
    driver = Driver([(0, 49_999)])
    assert driver.fetch("a", 4, mode=RECORD_LIMIT) == [(0, 3, 1)]
    assert driver.window == (0, 9_999)


def test_a_record_limit_is_kept_and_the_rest_of_the_log_batch_is_available() -> None:
    driver = Driver(TENS)
    assert driver.fetch("a", 4, mode=RECORD_LIMIT) == [(0, 3, 1)]
    assert driver.window == (0, 9)
    assert driver.partition.next_fetch_offset() == 4
    assert driver.fetch("b", 4, mode=RECORD_LIMIT) == [(4, 7, 1)]
    assert driver.fetch("c", 4, mode=RECORD_LIMIT) == [(8, 9, 1), (10, 11, 1)]


def test_a_record_limit_counts_over_cut_batches() -> None:
    driver = Driver(TENS)
    driver.fetch("a", 30)
    driver.acknowledge((2, 4, RELEASE), (12, 13, RELEASE), (29, 29, RELEASE))
    assert driver.fetch("b", 4, mode=RECORD_LIMIT) == [(2, 4, 2), (12, 12, 2)]
    assert driver.fetch("b", 3, mode=RECORD_LIMIT) == [(13, 13, 2), (29, 29, 2), (30, 30, 1)]


def test_a_released_in_flight_batch_comes_back_whole_and_new_ones_after_it() -> None:
    driver = Driver(TENS)
    driver.fetch("a", 20)
    driver.acknowledge((0, 19, RELEASE))
    assert driver.fetch("b", 5) == [(0, 19, 2)]
    driver.release("b")
    assert driver.fetch("b", 25) == [(0, 19, 3), (20, 29, 1)]


def test_available_records_between_others_are_given_and_those_of_others_are_not() -> None:
    driver = Driver(TENS)
    driver.fetch("a", 10)
    driver.fetch("b", 10)
    driver.acknowledge((3, 5, RELEASE))
    assert driver.partition.next_fetch_offset() == 3
    assert driver.fetch("b", 20) == [(3, 5, 2), (20, 39, 1)]


def test_only_what_was_read_is_given() -> None:
    driver = Driver([(0, 9)])
    driver.fetch()
    driver.release()
    driver.batches = [LogBatch(0, 4), LogBatch(5, 9)]
    assert driver.fetch(up_to=0) == [(0, 4, 2)]
    assert driver.fetch() == [(5, 9, 2)]


def test_as_many_as_may_are_in_flight_and_the_last_log_batch_may_overshoot() -> None:
    driver = Driver([(0, 79), (80, 119), (120, 199)], settings=ShareSettings(partition_max_record_locks=100))
    assert driver.fetch() == [(0, 119, 1)]
    assert driver.partition.next_fetch_offset() is None


def test_terminal_records_count_among_those_in_flight() -> None:
    driver = Driver(TENS, settings=ShareSettings(partition_max_record_locks=100))
    driver.fetch(max_records=100)
    driver.acknowledge((10, 99, ACCEPT))
    assert driver.partition.next_fetch_offset() is None
    driver.acknowledge((0, 9, ACCEPT))
    assert driver.partition.next_fetch_offset() == 100


def test_released_records_are_given_again_when_no_more_may_be_in_flight() -> None:
    driver = Driver(TENS, settings=ShareSettings(partition_max_record_locks=100))
    driver.fetch(max_records=100)
    driver.acknowledge((20, 29, RELEASE))
    assert driver.fetch("b") == [(20, 29, 2)]
    assert driver.window == (0, 99)
    assert driver.partition.next_fetch_offset() is None


def test_room_in_the_window_wakes_who_waits() -> None:
    driver = Driver(TENS, settings=ShareSettings(partition_max_record_locks=100))
    driver.fetch(max_records=100)
    driver.acknowledge((50, 59, ACCEPT))
    assert not driver.woken
    driver.acknowledge((0, 0, ACCEPT))
    assert driver.woken == 1


def test_a_record_that_nobody_ever_accepts_is_given_in_smaller_portions_until_it_is_archived() -> None:
    driver = Driver([(0, 15)])
    seen = []
    while (driver.partition.next_fetch_offset() or 0) < 16:
        acquired = driver.fetch()
        seen.append((len(numbers(acquired)), acquired[0][2]))
        driver.acknowledge(*((first, last, RELEASE) for first, last, _ in acquired))
    half = [(8, 4)] + [(1, 5)] * 8
    assert seen == [(16, 1), (16, 2), (16, 3), *half, *half]
    assert driver.window == (16, 15)


def test_what_was_delivered_often_comes_alone() -> None:
    driver = Driver([(0, 9), (10, 19), (20, 29)], settings=ShareSettings(delivery_count_limit=4))
    for _ in range(2):
        driver.fetch(max_records=10)
        driver.release()
    assert driver.fetch(max_records=100) == [(0, 4, 3)]
    assert driver.fetch("b", max_records=100) == [(5, 9, 3)]
    assert driver.fetch("b", max_records=100) == [(10, 29, 1)]


def test_what_was_delivered_seldom_is_not_given_together_with_what_was_delivered_often() -> None:
    driver = Driver([(0, 9), (10, 19)], settings=ShareSettings(delivery_count_limit=6))
    driver.fetch(max_records=20, batch_size=10)
    for _ in range(2):
        driver.acknowledge((10, 19, RELEASE))
        driver.fetch()
    driver.release()
    assert driver.fetch() == [(0, 9, 2)]
    assert driver.fetch() == [(10, 14, 4)]


def test_a_portion_counts_the_records_of_its_in_flight_batch_that_come_before() -> None:
    driver = Driver([(0, 15)])
    driver.fetch()
    for _ in range(2):
        driver.acknowledge((3, 15, RELEASE))
        driver.fetch()
    driver.release()
    assert driver.fetch() == [(0, 2, 2), (3, 7, 4)]
    driver.release()
    assert driver.fetch() == [(0, 2, 3)]
    assert driver.fetch() == [(3, 3, 5)]


def test_often_delivered_records_behind_a_whole_portion_wait() -> None:
    driver = Driver([(0, 15)])
    driver.fetch()
    for _ in range(2):
        driver.acknowledge((8, 15, RELEASE))
        driver.fetch()
    driver.release()
    assert driver.fetch() == [(0, 7, 2)]
    assert driver.fetch() == [(8, 15, 4)]


def test_with_a_limit_of_two_a_last_attempt_is_not_alone() -> None:
    driver = Driver([(0, 9)], settings=ShareSettings(delivery_count_limit=2))
    driver.fetch()
    driver.release()
    assert driver.fetch() == [(0, 9, 2)]
    driver.release()
    assert driver.window == (10, 9)


@pytest.mark.parametrize(("limit", "portions"), [(3, [4, 4, 1, 1, 1, 1]), (6, [4, 4, 4, 2, 1, 1, 1, 1])])
def test_portions_follow_the_delivery_limit(limit: int, portions: list[int]) -> None:
    driver = Driver([(0, 3)], settings=ShareSettings(delivery_count_limit=limit))
    seen = []
    for _ in portions:
        seen.append(len(numbers(driver.fetch())))
        driver.release()
    assert seen == portions


def test_a_member_may_ask_for_nothing() -> None:
    driver = Driver(TENS)
    assert driver.fetch(max_records=0) == []
    driver.batches = []
    assert driver.fetch() == []
    assert driver.window == (0, -1)


def test_locks_last_as_long_as_the_settings_say_at_that_time() -> None:
    driver = Driver(TENS)
    driver.fetch(max_records=10)
    driver.settings = ShareSettings(record_lock_duration_ms=1_000)
    driver.fetch(max_records=10)
    assert driver.partition.next_deadline() == driver.now_ms + 1_000
    driver.wait(1_000)
    assert driver.partition.next_fetch_offset() == 10
    assert driver.partition.next_deadline() == driver.now_ms - 1_000 + LOCK_MS
