"""How fast new connections may come, without connections."""

from __future__ import annotations

from kbroker.quotas import connection_rates
from kbroker.quotas.connection_rates import Arrival, ConnectionRates
from kbroker.quotas.meters import Windows

NOW = 1_700_000_000_000
AT_ONCE = Arrival(0, stays=True)


def rates(
    broker: float | None = None,
    listeners: dict[str, float] | None = None,
    ips: dict[str | None, float] | None = None,
    most_waiting: int = 100,
) -> ConnectionRates:
    made = ConnectionRates(Windows(11, 1000), most_waiting)
    made.put_in_force(broker, listeners or {}, ips or {})
    return made


def test_what_comes_within_the_rate_is_taken_at_once() -> None:
    limited = rates(broker=2)
    assert [limited.arrive("L", "10.0.0.1", NOW) for _ in range(20)] == [AT_ONCE] * 20


def test_what_comes_faster_waits_one_after_the_other() -> None:
    limited = rates(broker=2)
    for _ in range(20):
        limited.arrive("L", "10.0.0.1", NOW)
    waits = [limited.arrive("L", "10.0.0.1", NOW) for _ in range(4)]
    assert all(arrival.stays for arrival in waits)
    assert [arrival.wait_ms for arrival in waits] == sorted({arrival.wait_ms for arrival in waits})
    assert waits[0].wait_ms == 500
    # The listener takes one after the other, so the average is the rate.
    assert 1500 <= waits[-1].wait_ms <= 4000


def test_a_listener_has_a_rate_of_its_own_and_does_not_wait_for_others() -> None:
    limited = rates(listeners={"SLOW": 1})
    for _ in range(10):
        assert limited.arrive("SLOW", "10.0.0.1", NOW) == AT_ONCE
    assert limited.arrive("SLOW", "10.0.0.1", NOW).wait_ms == 1000
    assert limited.arrive("FAST", "10.0.0.1", NOW) == AT_ONCE


def test_what_comes_too_fast_from_an_address_is_held_and_closed_and_does_not_count() -> None:
    limited = rates(ips={"10.0.0.1": 1})
    for _ in range(10):
        assert limited.arrive("L", "10.0.0.1", NOW) == AT_ONCE
    assert [limited.arrive("L", "10.0.0.1", NOW) for _ in range(3)] == [Arrival(1000, stays=False)] * 3
    assert limited.arrive("L", "10.0.0.2", NOW) == AT_ONCE
    assert limited.arrive("L", "10.0.0.1", NOW + 11_000) == AT_ONCE


def test_every_address_has_its_share_of_the_default() -> None:
    limited = rates(ips={None: 1, "10.0.0.9": 1000})
    for address in ("10.0.0.1", "10.0.0.2"):
        for _ in range(10):
            assert limited.arrive("L", address, NOW).stays
        assert not limited.arrive("L", address, NOW).stays
    assert all(limited.arrive("L", "10.0.0.9", NOW).stays for _ in range(1000))


def test_no_more_wait_than_the_backlog_has_room_for() -> None:
    limited = rates(broker=1, most_waiting=3)
    for _ in range(10):
        limited.arrive("L", "10.0.0.1", NOW)
    assert [limited.arrive("L", "10.0.0.1", NOW).stays for _ in range(5)] == [True, True, True, False, False]
    assert limited.arrive("L", "10.0.0.1", NOW + 20_000) == AT_ONCE


def test_addresses_that_are_gone_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(connection_rates, "_FEWEST_METERS", 10)
    limited = rates(ips={None: 1})
    limited._look_above = 10
    for number in range(1000):
        limited.arrive("L", f"10.0.{number // 256}.{number % 256}", NOW + 1000 * number)
    assert len(limited._ips) <= 30


def test_without_any_rate_there_is_nothing_to_enforce() -> None:
    made = ConnectionRates(Windows(11, 1000), 10)
    assert not made.put_in_force(None, {}, {})
    assert made.put_in_force(None, {"L": 1}, {})
