"""What several clients need of the brokers under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.harness import sasl
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import KBROKER, SETTINGS, Server, selected_brokers
from compat.harness.kafka import RealKafka


@pytest.fixture(scope="session", params=selected_brokers())
def sasl_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A broker that asks who comes; its users: compat/harness/sasl.py."""
    settings = SETTINGS | sasl.SETTINGS
    if request.param == KBROKER:
        server: Server = KBrokerProcess(settings | sasl.KBROKER_ALONE)
    else:
        server = RealKafka(settings)
    with server:
        sasl.make_users(server.bootstrap)
        yield server
