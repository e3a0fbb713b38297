"""Every API, asked by users without rights, with rights to some things, with one right each, with all."""

from __future__ import annotations

from typing import Any

import pytest

from compat.differential.acls.cases import CASES, OFFERED, Asking, Case, by_answer
from compat.differential.acls.users import ADMIN, CLUSTER_ONLY, NOBODY, ONE_TYPE, SINGLE, SOME, Door, User
from compat.differential.pair import Pair
from compat.harness.side import Side, versions

WITHOUT_RULES = {"GetTelemetrySubscriptions", "PushTelemetry"}
"""Everybody may send metrics; brokers offer it only where something receives them."""

ALL_CASES = [
    pytest.param(api_name, case, id=f"{api_name}-{case.__name__}")
    for api_name, cases in CASES.items()
    for case in cases
]


def test_every_api_has_a_case() -> None:
    assert CASES.keys() | WITHOUT_RULES >= OFFERED


@pytest.mark.parametrize(("api_name", "case"), ALL_CASES)
@pytest.mark.parametrize("user", [NOBODY, SOME, ADMIN], ids=lambda user: user.name)
def test_every_version_answers_as_kafka(
    pair: Pair, doors: dict[str, Door], user: User, api_name: str, case: Case
) -> None:
    def scenario(side: Side) -> Any:
        door = doors[side.name]
        return by_answer({version: case(Asking(door, user, version)) for version in versions(api_name)})

    pair.same(scenario)


@pytest.mark.parametrize(("api_name", "case"), ALL_CASES)
def test_who_has_one_right_or_one_kind_of_things_is_answered_as_by_kafka(
    pair: Pair, doors: dict[str, Door], api_name: str, case: Case
) -> None:
    def scenario(side: Side) -> Any:
        door, newest = doors[side.name], max(versions(api_name))
        users = SINGLE | CLUSTER_ONLY | ONE_TYPE
        return by_answer({name: case(Asking(door, user, newest)) for name, user in users.items()})

    pair.same(scenario)
