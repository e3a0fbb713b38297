"""Rates and token buckets, with numbers that Kafka's own formulas give."""

from __future__ import annotations

import pytest

from kbroker.quotas.meters import MAX_THROTTLE_MS, Rate, TokenBucket, Windows

WINDOWS = Windows(11, 1000)
NOW = 1_700_000_000_000


def test_a_rate_counts_as_if_all_windows_but_one_had_passed() -> None:
    rate = Rate(WINDOWS)
    rate.record(10_000, NOW)
    assert rate.throttle_ms(1000, NOW) == 0  # 10,000 in ten seconds
    rate.record(1000, NOW)
    assert rate.throttle_ms(1000, NOW) == 1000  # 1,100 a second for ten seconds


def test_the_wait_is_what_brings_the_rate_to_the_bound() -> None:
    rate = Rate(WINDOWS)
    rate.record(30_000, NOW)
    wait_ms = rate.throttle_ms(1000, NOW)
    assert wait_ms == 20_000
    # After 11 seconds without a record the window with them is gone: Kafka, too, forgets them then.
    assert rate.throttle_ms(1000, NOW + 10_999) > 0
    assert rate.throttle_ms(1000, NOW + 11_000) == 0


def test_a_steady_rate_below_the_bound_is_never_throttled() -> None:
    rate = Rate(WINDOWS)
    for tenth in range(600):
        now_ms = NOW + 100 * tenth
        rate.record(99, now_ms)
        assert rate.throttle_ms(1000, now_ms) == 0


def test_a_client_that_waits_as_told_keeps_to_the_bound() -> None:
    rate = Rate(WINDOWS)
    now_ms, sent = NOW, 0
    while now_ms < NOW + 100_000:
        rate.record(5000, now_ms)
        sent += 5000
        now_ms += rate.throttle_ms(1000, now_ms) or 1
    assert sent == pytest.approx(100_000, rel=0.15)  # one burst of ten seconds' worth at the start


def test_what_is_taken_back_does_not_count() -> None:
    rate = Rate(WINDOWS)
    rate.record(50_000, NOW)
    rate.record(-50_000, NOW)
    assert rate.throttle_ms(1, NOW) == 0


def test_a_wait_is_bounded_by_what_an_answer_can_say() -> None:
    rate = Rate(WINDOWS)
    rate.record(1e12, NOW)
    assert rate.throttle_ms(1e-3, NOW) == MAX_THROTTLE_MS
    assert rate.throttle_ms(0, NOW) == MAX_THROTTLE_MS


def test_a_rate_is_idle_when_nothing_of_it_counts() -> None:
    rate = Rate(WINDOWS)
    rate.record(1, NOW)
    assert not rate.is_idle(NOW + 10_999)
    assert rate.is_idle(NOW + 11_000)


def test_a_bucket_starts_full_and_lets_one_burst_go_below_zero() -> None:
    bucket = TokenBucket(WINDOWS)
    assert bucket.throttle_ms(2, NOW) == 0
    bucket.record(22, 2, NOW)  # all that it holds: eleven windows of two
    assert bucket.throttle_ms(2, NOW) == 0
    bucket.record(10, 2, NOW)
    assert bucket.throttle_ms(2, NOW) == 5000
    assert bucket.throttle_ms(2, NOW + 4000) == 1000
    assert bucket.throttle_ms(2, NOW + 5000) == 0


def test_a_bucket_holds_no_more_than_all_windows_bring() -> None:
    bucket = TokenBucket(WINDOWS)
    bucket.record(22, 2, NOW)
    bucket.record(23, 2, NOW + 1_000_000)
    assert bucket.throttle_ms(2, NOW + 1_000_000) == 500


def test_a_bucket_is_idle_when_it_is_full() -> None:
    bucket = TokenBucket(WINDOWS)
    bucket.record(2, 2, NOW)
    assert not bucket.is_idle(NOW + 999)
    assert bucket.is_idle(NOW + 1000)
