"""Every API, asked by users without rights, with rights to some things, with one right each, with all."""

from __future__ import annotations

from typing import Any

import pytest

from compat.differential.pair import Pair, Side, versions
from kbroker.requests.apis import APIS

from .cases import CASES, Asking
from .conftest import Doors
from .users import ADMIN, CLUSTER_ONLY, NOBODY, ONE_TYPE, SINGLE, SOME

WITHOUT_AN_AUTHORIZER = {"GetTelemetrySubscriptions", "PushTelemetry"}
"""Kafka lets everybody send metrics; both brokers offer it only where something receives them."""

ALL_CASES = [
    pytest.param(api_name, case, id=f"{api_name}-{case.__name__}")
    for api_name, cases in CASES.items()
    for case in cases
]


def test_every_api_has_a_case() -> None:
    assert CASES.keys() | WITHOUT_AN_AUTHORIZER == {api.name for api in APIS}


@pytest.mark.parametrize(("api_name", "case"), ALL_CASES)
@pytest.mark.parametrize("user", [NOBODY, SOME, ADMIN], ids=lambda user: user.name)
def test_every_version_answers_as_kafka(
    pair: Pair, doors: Doors, user: Any, api_name: str, case: Any
) -> None:
    def scenario(side: Side) -> Any:
        door, ids = doors.doors[side.name], doors.ids[side.name]
        return {version: case(Asking(door, user, version, ids)) for version in versions(api_name)}

    pair.same(scenario)


@pytest.mark.parametrize(("api_name", "case"), ALL_CASES)
def test_who_has_one_right_or_one_kind_of_things_is_answered_as_by_kafka(
    pair: Pair, doors: Doors, api_name: str, case: Any
) -> None:
    def scenario(side: Side) -> Any:
        door, ids = doors.doors[side.name], doors.ids[side.name]
        newest = max(versions(api_name))
        users = SINGLE | CLUSTER_ONLY | ONE_TYPE
        return {name: case(Asking(door, user, newest, ids)) for name, user in users.items()}

    pair.same(scenario)
