"""Checks of passwords, one after the other, and none for who has gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kbroker.authentication.passwords import Passwords
from kbroker.pending import Pending
from kbroker.security.scram_credentials import of_password, random_salt

MECHANISM = "SCRAM-SHA-256"
ALICE = of_password(MECHANISM, "secret", random_salt())


class SlowWorker:
    """Does its work when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Pending[Any]]] = []

    def run(self, function: Callable[[], Any]) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self.waiting.append((function, pending))
        return pending

    def work(self) -> None:
        function, pending = self.waiting.pop(0)
        pending.resolve(function())


def test_one_password_is_checked_at_a_time() -> None:
    worker = SlowWorker()
    passwords = Passwords(worker, b"key")
    checks = [passwords.check("alice", MECHANISM, ALICE, guess) for guess in ("a", "secret", "b")]
    results = []
    while worker.waiting:
        assert len(worker.waiting) == 1
        worker.work()
    for check in checks:
        assert isinstance(check, Pending)
        results.append(check.result())
    assert results == [False, True, False]


def test_a_right_password_is_remembered_until_it_changes() -> None:
    worker = SlowWorker()
    passwords = Passwords(worker, b"key")
    passwords.check("alice", MECHANISM, ALICE, "secret")
    worker.work()
    assert passwords.check("alice", MECHANISM, ALICE, "secret") is True
    changed = of_password(MECHANISM, "other", random_salt())
    assert isinstance(passwords.check("alice", MECHANISM, changed, "secret"), Pending)


def test_nothing_is_checked_for_who_has_gone() -> None:
    worker = SlowWorker()
    passwords = Passwords(worker, b"key")
    passwords.check("alice", MECHANISM, ALICE, "a")
    for number in range(2000):
        check = passwords.check("alice", MECHANISM, ALICE, str(number))
        assert isinstance(check, Pending)
        check.abandon()
    last = passwords.check("alice", MECHANISM, ALICE, "secret")
    worker.work()
    worker.work()
    assert worker.waiting == []
    assert isinstance(last, Pending)
    assert last.result()
