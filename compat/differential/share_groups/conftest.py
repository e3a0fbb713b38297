"""Brokers whose share groups are quick and small."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.harness.brokers import SETTINGS, Server, running

QUICK = {
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": "3",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "1000",
}


@pytest.fixture(scope="package")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS | QUICK) as servers:
        yield servers
