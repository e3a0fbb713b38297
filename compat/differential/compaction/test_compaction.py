"""The same records through kbroker and Apache Kafka, both compacted: what survives is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.differential.compaction import scenarios
from compat.differential.compaction.scenarios import SETTINGS
from compat.differential.pair import Pair
from compat.harness.brokers import Server, running
from compat.harness.side import Side


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS) as servers:
        yield servers


@pytest.mark.parametrize(
    "scenario",
    [
        scenarios.keys_values_and_tombstones,
        scenarios.tombstones_past_their_retention,
        scenarios.transactions,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_what_survives_is_the_same(scenario: Callable[[Side, str], Any], pair: Pair, topic: str) -> None:
    pair.same(lambda side: scenario(side, topic))
