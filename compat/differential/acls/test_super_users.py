"""Every API, asked by a super user, of whom no ACL speaks."""

from __future__ import annotations

from typing import Any

import pytest

from compat.differential.pair import Pair, Side, versions

from .cases import CASES, Asking
from .conftest import Doors
from .users import ADMIN, SETTINGS


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {**SETTINGS, "super.users": "User:admin;User:ANONYMOUS"}


@pytest.mark.parametrize("api_name", CASES)
def test_every_version_answers_as_kafka(pair: Pair, doors: Doors, api_name: str) -> None:
    def scenario(side: Side) -> Any:
        door, ids = doors.doors[side.name], doors.ids[side.name]
        return {
            version: [case(Asking(door, ADMIN, version, ids)) for case in CASES[api_name]]
            for version in versions(api_name)
        }

    pair.same(scenario)
