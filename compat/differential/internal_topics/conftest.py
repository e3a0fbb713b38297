"""Brokers whose internal topics have few partitions, so that they are quickly read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.harness.brokers import SETTINGS, Server, running
from compat.harness.side import Side
from compat.harness.waiting import eventually

FEW = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}


@pytest.fixture(scope="package")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running({**SETTINGS, **FEW}) as servers:
        for server in servers:
            side = Side(server)
            for key_type, name in enumerate(("__consumer_offsets", "__transaction_state")):
                eventually(lambda side=side, of=key_type, name=name: _is_made(side, of, name))
            side.disconnect()
        yield servers


def _is_made(side: Side, key_type: int, name: str) -> bool:
    found = side.raw("FindCoordinator", 2, {"Key": "any", "KeyType": key_type})
    return found["ErrorCode"] == 0 and side.is_served(name, 3)
