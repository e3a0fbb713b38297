"""Brokers with an authorizer: some with users who may do this and that, some with nothing but super users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.conftest import selected_brokers
from compat.differential.pair import Pair
from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import RealKafka

from .cases import ALLOWED, prepare
from .users import (
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


class Doors:
    """The doors of both brokers, and the ids of their topics."""

    def __init__(self) -> None:
        self.doors: dict[str, Door] = {}
        self.ids: dict[str, dict[str, bytes]] = {}


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {**SETTINGS, **OPEN_UNTIL_THERE_ARE_ACLS}


@pytest.fixture(scope="module")
def both_brokers(settings: dict[str, str]) -> Iterator[Pair]:
    if len(selected_brokers()) < 2:
        pytest.skip("KBROKER_COMPAT selects one broker, a comparison needs both")
    with KBrokerProcess(settings) as kbroker, RealKafka(settings) as apache:
        yield Pair(kbroker, apache)


@pytest.fixture(scope="module")
def doors(both_brokers: Pair, settings: dict[str, str]) -> Iterator[Doors]:
    doors = Doors()
    for side in (both_brokers.kbroker, both_brokers.apache):
        door = doors.doors[side.name] = Door(side)
        if "super.users" not in settings:
            door.let_in(
                *(
                    acl(type_, ALLOWED, ALL, SOME.host, pattern=PREFIXED)
                    for type_ in (TOPIC, GROUP, TRANSACTIONAL_ID)
                )
            )
        doors.ids[side.name] = prepare(door)
    yield doors
    for door in doors.doors.values():
        door.close()
