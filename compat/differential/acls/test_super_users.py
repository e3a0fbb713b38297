"""Every API, asked by a super user, of whom no ACL speaks."""

from __future__ import annotations

from typing import Any

import pytest

from compat.differential.acls.cases import CASES, Asking, by_answer
from compat.differential.acls.users import ADMIN, SETTINGS, Door
from compat.differential.pair import Pair
from compat.harness.side import Side, versions


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {**SETTINGS, "super.users": "User:admin;User:ANONYMOUS"}


@pytest.mark.parametrize("api_name", CASES)
def test_a_super_user_is_answered_as_by_kafka(pair: Pair, doors: dict[str, Door], api_name: str) -> None:
    def scenario(side: Side) -> Any:
        door = doors[side.name]
        return [
            by_answer({version: case(Asking(door, ADMIN, version)) for version in versions(api_name)})
            for case in CASES[api_name]
        ]

    pair.same(scenario)
