"""What a share partition makes of a log that changes, and of what it finds stored."""

from __future__ import annotations

from kbroker.coordinators.shares.partition import AcquireMode
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange
from tests.coordinators.shares.driver import ACCEPT, LOCK_MS, RELEASE, Driver

AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
TENS = [(first, first + 9) for first in range(0, 100, 10)]


# the log start


def test_a_log_start_below_the_start_offset_is_nothing() -> None:
    driver = Driver(TENS)
    driver.fetch(max_records=10)
    driver.acknowledge((0, 4, ACCEPT))
    assert driver.move_log_start(5) is None
    assert driver.window == (5, 9)


def test_a_log_start_past_the_window_leaves_nothing_in_flight() -> None:
    driver = Driver(TENS)
    driver.fetch(max_records=20)
    driver.move_log_start(40)
    assert driver.written == [ShareStateChange(40)]
    assert driver.window == (40, 39)
    assert driver.partition.next_deadline() is None
    assert driver.acknowledge((0, 19, ACCEPT)) is None
    assert driver.fetch(max_records=1) == [(40, 49, 1)]


def test_a_log_start_inside_the_window_ends_what_is_below_it() -> None:
    driver = Driver(TENS)
    driver.fetch("a", 10)
    driver.fetch("b", 10)
    driver.fetch("c", 10)
    driver.release("b")
    driver.move_log_start(15)
    assert driver.window == (15, 29)
    assert driver.acknowledge((0, 9, ACCEPT), member="a") is None
    assert driver.fetch("d", 1) == [(15, 19, 2)]
    driver.acknowledge((10, 19, ACCEPT), member="d")
    assert driver.window == (20, 29)
    driver.move_log_start(25)
    driver.wait(LOCK_MS)
    assert driver.written[-1] == ShareStateChange(25, [Run(25, 29, AVAILABLE, 1)])


def test_a_log_start_that_meets_done_records_goes_over_them() -> None:
    driver = Driver(TENS)
    driver.fetch(max_records=20)
    driver.acknowledge((5, 14, ACCEPT))
    driver.move_log_start(5)
    assert driver.window == (15, 19)


def test_a_log_start_that_passes_settling_records() -> None:
    driver = Driver(TENS)
    driver.fetch(max_records=20)
    driver.settles = False
    for stored in (True, False):
        change = driver.acknowledge((driver.partition.start_offset, 19, RELEASE))
        assert change is not None
        driver.partition.log_start_moved(driver.partition.start_offset + 5, driver.now_ms)
        driver.settle(change, stored=stored)
        assert driver.partition.end_offset == 19
        assert driver.partition.next_fetch_offset() == (driver.partition.start_offset if stored else 20)
        driver.fetch(max_records=1)


def test_a_log_start_that_makes_room_wakes_who_waits() -> None:
    driver = Driver(TENS, settings=ShareSettings(partition_max_record_locks=100))
    driver.fetch(max_records=100)
    driver.move_log_start(10)
    assert driver.woken == 1


# what the log has not


def test_released_records_that_the_log_has_lost_are_archived() -> None:
    driver = Driver(TENS)
    driver.fetch(max_records=30, batch_size=10)
    driver.acknowledge((0, 14, RELEASE), (20, 29, RELEASE))
    driver.batches = driver.batches[2:]
    assert driver.fetch("b", 10) == [(20, 29, 2)]
    assert driver.written[-1] == ShareStateChange(0, [Run(0, 14, ARCHIVED, 1)])
    assert driver.window == (15, 29)


def test_offsets_that_the_log_never_had_are_skipped() -> None:
    driver = Driver([(5, 9), (20, 24)])
    assert driver.fetch(max_records=5) == [(5, 9, 1)]
    assert driver.window == (5, 9)
    assert driver.fetch(max_records=5) == [(20, 24, 1)]
    assert not driver.written
    driver.acknowledge((5, 9, ACCEPT))
    assert driver.window == (20, 24)


def test_offsets_between_batches_of_one_read_are_acquired_with_them() -> None:
    driver = Driver([(0, 4), (10, 14)])
    assert driver.fetch() == [(0, 14, 1)]


def test_a_limit_that_falls_between_batches_of_one_read_is_kept() -> None:
    driver = Driver([(0, 4), (10, 14)])
    assert driver.fetch(max_records=7) == [(0, 6, 1)]
    assert driver.fetch(max_records=2) == [(10, 14, 1)]
    assert driver.window == (0, 14)


def test_what_is_released_while_the_log_is_read_is_not_taken_for_lost() -> None:
    driver = Driver(TENS)
    driver.fetch("a", 10)
    read_at = driver.partition.next_fetch_offset()
    assert read_at == 10
    driver.acknowledge((0, 9, RELEASE))
    acquired, change = driver.partition.acquire(
        "b",
        driver.batches[1:],
        fetch_offset=read_at,
        max_records=10,
        batch_size=10,
        mode=AcquireMode.BATCH_OPTIMIZED,
        now_ms=driver.now_ms,
    )
    assert acquired == [(10, 19, 1)]
    assert change is None
    assert driver.fetch("b", 10) == [(0, 9, 2)]


# aborted transactions


def test_aborted_records_are_archived_and_not_given() -> None:
    driver = Driver([(0, 2), (3, 6), (7, 7), (8, 12), (13, 13)])
    assert driver.fetch(aborted=[(3, 6)]) == [(0, 2, 1), (7, 13, 1)]
    assert driver.written == [ShareStateChange(0, [Run(3, 6, ARCHIVED, 0)])]
    driver.acknowledge((0, 2, ACCEPT), (7, 13, ACCEPT))
    assert driver.window == (14, 13)


def test_aborted_records_that_are_all_there_is_leave_nothing_to_give() -> None:
    driver = Driver([(0, 9), (10, 19)])
    assert driver.fetch(max_records=10, aborted=[(0, 9)]) == []
    assert driver.window == (10, 9)
    assert driver.partition.next_deadline() is None
    assert driver.fetch() == [(10, 19, 1)]


def test_aborted_records_that_could_not_be_archived_are_found_again() -> None:
    driver = Driver([(0, 9)])
    driver.settles = False
    acquired, change = driver.partition.acquire(
        "a",
        driver.batches,
        fetch_offset=0,
        max_records=10,
        batch_size=10,
        mode=AcquireMode.BATCH_OPTIMIZED,
        aborted=[(2, 3)],
        now_ms=0,
    )
    assert acquired == [(0, 1, 1), (4, 9, 1)]
    assert change is not None
    driver.settle(change, stored=False)
    assert driver.partition.next_fetch_offset() == 2
    assert driver.fetch("b") == [(2, 3, 1)]


# what is stored


def test_unanswered_records_come_back_after_a_crash_with_their_count_as_it_was_stored() -> None:
    driver = Driver(TENS)
    driver.fetch("a", 10)
    driver.fetch("b", 10)
    driver.acknowledge((0, 4, ACCEPT), (5, 9, RELEASE))
    driver.fetch("c", 1)
    driver.restart()
    assert driver.window == (5, 9)
    assert driver.fetch("c", 20) == [(5, 9, 2), (10, 29, 1)]


def test_holes_between_stored_runs_are_new_records() -> None:
    runs = [Run(10, 14, ACKNOWLEDGED, 1), Run(25, 29, AVAILABLE, 2)]
    driver = Driver(TENS, stored=ShareState(5, runs))
    assert driver.window == (5, 29)
    assert driver.partition.next_fetch_offset() == 5
    assert driver.fetch(max_records=1) == [(5, 9, 1)]
    assert driver.partition.next_fetch_offset() == 15
    assert driver.fetch(max_records=8, mode=AcquireMode.RECORD_LIMIT) == [(15, 22, 1)]
    assert driver.fetch(max_records=100) == [(23, 24, 1), (25, 29, 3), (30, 99, 1)]
    driver.acknowledge((5, 9, ACCEPT), (15, 99, ACCEPT))
    assert driver.window == (100, 99)


def test_a_hole_at_the_limit_is_still_filled() -> None:
    settings = ShareSettings(partition_max_record_locks=100)
    driver = Driver([(0, 199)], stored=ShareState(0, [Run(50, 99, ACKNOWLEDGED, 1)]), settings=settings)
    assert driver.fetch(max_records=500) == [(0, 49, 1)]
    assert driver.partition.next_fetch_offset() is None


def test_the_start_offset_does_not_pass_a_hole() -> None:
    driver = Driver(TENS, stored=ShareState(0, [Run(0, 9, ACKNOWLEDGED, 1), Run(20, 29, ACKNOWLEDGED, 1)]))
    assert driver.window == (10, 29)
    driver.fetch(max_records=10)
    driver.acknowledge((10, 19, ACCEPT))
    assert driver.window == (30, 29)


def test_a_hole_that_the_log_has_not_is_skipped() -> None:
    driver = Driver([(20, 29)], stored=ShareState(0, [Run(10, 19, ACKNOWLEDGED, 1)]))
    assert driver.fetch() == [(20, 29, 1)]
    assert driver.window == (20, 29)


def test_a_hole_that_begins_inside_a_log_batch_is_cut_out_of_it() -> None:
    driver = Driver([(0, 99)], stored=ShareState(0, [Run(0, 19, ACKNOWLEDGED, 1), Run(40, 49, AVAILABLE, 1)]))
    assert driver.fetch(max_records=1) == [(20, 39, 1)]
    assert driver.fetch(max_records=1) == [(40, 49, 2)]
    assert driver.fetch(max_records=1) == [(50, 99, 1)]


def test_all_that_is_stored_may_be_done() -> None:
    driver = Driver(TENS, stored=ShareState(0, [Run(0, 9, ACKNOWLEDGED, 1), Run(10, 17, ARCHIVED, 5)]))
    assert driver.window == (18, 17)
    assert driver.partition.state() == ShareState(18, [])
    assert driver.fetch(max_records=1) == [(18, 19, 1)]
