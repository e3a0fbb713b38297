"""Both brokers at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.conftest import selected_brokers

from .pair import Pair


@pytest.fixture(scope="session")
def both_brokers(request: pytest.FixtureRequest) -> Pair:
    if len(selected_brokers()) < 2:
        pytest.skip("KBROKER_COMPAT selects one broker, a comparison needs both")
    return Pair(request.getfixturevalue("kbroker_server"), request.getfixturevalue("apache_kafka_server"))


@pytest.fixture
def pair(both_brokers: Pair) -> Iterator[Pair]:
    yield both_brokers
    both_brokers.kbroker.disconnect()
    both_brokers.apache.disconnect()
