"""What members of share groups may not acquire any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kbroker.coordinators.shares.store import ShareKey
from kbroker.shares.rights import MemberRights

KEY = ShareKey("g", bytes(16), 0)


def rights_where(*holders: str) -> MemberRights:
    partition: Any = SimpleNamespace(leases_of=lambda member_id: [member_id] if member_id in holders else [])
    live: Any = SimpleNamespace(partition=partition)
    return MemberRights(lambda key: live if key == KEY else None)


def test_a_partition_is_not_taken_from_who_holds_records_of_it() -> None:
    rights = rights_where("m")
    assert not rights.withdraw(KEY, "m")
    assert rights.may_acquire("g", "m", KEY[1:])


def test_what_is_taken_from_one_member_others_may_acquire() -> None:
    rights = rights_where("m")
    assert rights.withdraw(KEY, "n")
    assert not rights.may_acquire("g", "n", KEY[1:])
    assert rights.may_acquire("g", "m", KEY[1:])


def test_a_partition_that_nobody_fetches_from_is_taken_too() -> None:
    rights = rights_where()
    other = KEY._replace(partition=7)
    assert rights.withdraw(other, "m")
    assert not rights.may_acquire("g", "m", other[1:])


def test_what_is_given_again_or_was_of_a_member_that_is_gone_may_be_acquired() -> None:
    rights = rights_where()
    rights.withdraw(KEY, "m")
    rights.withdraw(KEY, "n")
    rights.grant(KEY, "m")
    rights.forget("g", "n")
    assert rights.may_acquire("g", "m", KEY[1:])
    assert rights.may_acquire("g", "n", KEY[1:])
