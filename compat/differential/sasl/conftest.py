"""Brokers that ask who comes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.harness import sasl
from compat.harness.brokers import SETTINGS, Server, running


@pytest.fixture(scope="package")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS | sasl.SETTINGS, sasl.KBROKER_ALONE) as servers:
        for server in servers:
            sasl.make_users(server.bootstrap)
        yield servers
