"""Sessions that end unless the client authenticates again (KIP-368)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.differential.sasl.test_logins import CLUSTER, RIGHT, VERSIONS, handshake, message, tell
from compat.harness import sasl
from compat.harness.brokers import SETTINGS, Server, running
from compat.harness.sasl import ALICE, Client
from compat.harness.side import Side

LIFETIME_MS = 1500
LIMIT = {"listener.name.plaintext.plain.connections.max.reauth.ms": str(LIFETIME_MS)}
IN = [handshake("PLAIN"), message(RIGHT)]


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS | sasl.SETTINGS | LIMIT, sasl.KBROKER_ALONE) as servers:
        yield servers


STORIES = {
    "again": [*IN, CLUSTER, *IN, CLUSTER],
    "again with version 0": [
        handshake("PLAIN"),
        message(RIGHT, 0),
        handshake("PLAIN"),
        message(RIGHT, 0),
        CLUSTER,
    ],
    "twice within a second": [*IN, *IN, handshake("PLAIN"), CLUSTER],
    "as somebody else": [*IN, handshake("PLAIN"), message(sasl.plain(*ALICE)), CLUSTER],
    "by another mechanism": [*IN, handshake("SCRAM-SHA-256"), message(b"n,,n=admin,r=x"), CLUSTER],
    "by an unknown mechanism": [*IN, handshake("NOPE"), CLUSTER],
    "with a wrong password": [*IN, handshake("PLAIN"), message(sasl.plain("admin", "x")), CLUSTER],
    "with a request in between": [*IN, handshake("PLAIN"), CLUSTER, CLUSTER],
    "without a handshake": [*IN, message(RIGHT), CLUSTER],
    "versions in between": [*IN, VERSIONS, CLUSTER],
}


@pytest.mark.parametrize("steps", STORIES.values(), ids=STORIES.keys())
def test_authenticating_again(pair: Pair, steps: list[tuple[str, int, dict[str, Any]]]) -> None:
    pair.same(lambda side: tell(Client(side.server.bootstrap), steps))


@pytest.mark.parametrize("then", [[CLUSTER], [*IN, CLUSTER]], ids=["a request", "again"])
def test_after_the_end(pair: Pair, then: list[tuple[str, int, dict[str, Any]]]) -> None:
    def scenario(side: Side) -> Any:
        client = sasl.logged_in(side.server.bootstrap)
        time.sleep((LIFETIME_MS + 300) / 1000)  # the end is a time
        return tell(client, then)

    pair.same(scenario)
