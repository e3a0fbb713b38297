"""Brokers with an authorizer: some with users who may do this and that, some with nothing but super users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.differential.acls.cases import ALLOWED, prepare
from compat.differential.acls.users import (
    ALL,
    GROUP,
    OPEN_UNTIL_THERE_ARE_ACLS,
    PREFIXED,
    SETTINGS,
    SOME,
    TOPIC,
    TRANSACTIONAL_ID,
    Door,
    acl,
)
from compat.harness.brokers import Server, running
from compat.harness.side import Side


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {**SETTINGS, **OPEN_UNTIL_THERE_ARE_ACLS}


@pytest.fixture(scope="module")
def brokers(settings: dict[str, str]) -> Iterator[tuple[Server, ...]]:
    with running(settings) as servers:
        yield servers


@pytest.fixture(scope="module")
def doors(brokers: tuple[Server, ...], settings: dict[str, str]) -> Iterator[dict[str, Door]]:
    """By the name of the broker."""
    doors = {server.name: Door(Side(server)) for server in brokers}
    for door in doors.values():
        if "super.users" not in settings:
            door.let_in(
                *(
                    acl(type_, ALLOWED, ALL, SOME.host, pattern=PREFIXED)
                    for type_ in (TOPIC, GROUP, TRANSACTIONAL_ID)
                )
            )
        prepare(door)
    yield doors
    for door in doors.values():
        door.close()
