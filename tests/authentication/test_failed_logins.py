"""Failures cost the address that makes them."""

from __future__ import annotations

from kbroker.authentication.failed_logins import FailedLogins


def delays(failed: FailedLogins, count: int, now_ms: int = 0, host: str = "10.0.0.1") -> list[int]:
    return [failed.add(host, now_ms, 100, 2000)[0] for _ in range(count)]


def test_the_first_failures_wait_as_in_kafka_and_later_ones_longer() -> None:
    assert delays(FailedLogins(), 16) == [100] * 10 + [200, 400, 800, 1600, 2000, 2000]


def test_a_broker_that_lets_nobody_wait_lets_those_wait_who_go_on() -> None:
    failed = FailedLogins()
    assert [failed.add("10.0.0.1", 0, 0, 300)[0] for _ in range(14)] == [0] * 10 + [100, 200, 300, 300]
    assert [failed.add("10.0.0.2", 0, 0, 0)[0] for _ in range(14)] == [0] * 14


def test_another_address_does_not_pay() -> None:
    failed = FailedLogins()
    delays(failed, 20)
    assert delays(failed, 1, host="10.0.0.2") == [100]


def test_a_quiet_minute_is_enough() -> None:
    failed = FailedLogins()
    delays(failed, 20)
    assert delays(failed, 1, now_ms=59_999) == [2000]
    assert delays(failed, 1, now_ms=59_999 + 60_000) == [100]


def test_the_log_hears_of_few() -> None:
    failed = FailedLogins()
    assert sum(failed.add("10.0.0.1", 0, 100, 2000)[1] for _ in range(5000)) == 15


def test_addresses_are_forgotten_when_there_are_too_many() -> None:
    failed = FailedLogins()
    for number in range(20_000):
        failed.add(str(number), 0, 100, 2000)
    assert len(failed._failures) == 10_000
