"""Brokers that take what clients push: Kafka needs a receiver for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.harness.brokers import APACHE, KBROKER, SETTINGS, Server, new_kbroker, selected_brokers
from compat.harness.kafka import RealKafka

RECEIVER = Path(__file__).with_name("TelemetryReceiver.java")


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Server, ...]]:
    settings = {**SETTINGS, "telemetry.max.bytes": "1000"}
    with ExitStack() as stack:
        servers: list[Server] = []
        if KBROKER in selected_brokers():
            servers.append(stack.enter_context(new_kbroker(settings)))
        if APACHE in selected_brokers():
            receiver = {"metric.reporters": RECEIVER.stem}
            servers.append(stack.enter_context(RealKafka(settings | receiver, plugin=RECEIVER)))
        yield tuple(servers)
