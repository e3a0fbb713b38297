"""The two brokers under test: which of them a run selects, and what both are told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import RealKafka

Server = KBrokerProcess | RealKafka

KBROKER, APACHE = KBrokerProcess.name, RealKafka.name
SELECTIONS = {
    "kbroker": (KBROKER,),
    "apache": (APACHE,),
    "both": (KBROKER, APACHE),
    "record": (APACHE,),
}
# So that answers can be compared.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def selection() -> str:
    """KBROKER_COMPAT: kbroker unless told otherwise."""
    name = os.environ.get("KBROKER_COMPAT", "kbroker")
    if name not in SELECTIONS:
        raise pytest.UsageError(f"KBROKER_COMPAT={name}: one of {', '.join(SELECTIONS)}")
    return name


def selected_brokers() -> tuple[str, ...]:
    return SELECTIONS[selection()]


def new_kbroker(settings: Mapping[str, str]) -> KBrokerProcess:
    """Not started; KBROKER_COMPAT_ARGUMENTS gives it more arguments."""
    arguments = os.environ.get("KBROKER_COMPAT_ARGUMENTS", "").split()
    return KBrokerProcess(settings, arguments=tuple(arguments))


@contextmanager
def running(
    settings: Mapping[str, str], kbroker_alone: Mapping[str, str] | None = None
) -> Iterator[tuple[Server, ...]]:
    """The selected brokers with these settings; kbroker with some more."""
    with ExitStack() as stack:
        servers: list[Server] = []
        if KBROKER in selected_brokers():
            servers.append(stack.enter_context(new_kbroker({**settings, **(kbroker_alone or {})})))
        if APACHE in selected_brokers():
            servers.append(stack.enter_context(RealKafka(settings)))
        yield tuple(servers)
