"""All families of metrics, in the order in which they are written. docs/metrics.md is made of this table."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kbroker.observability.families import Family

SECTIONS: tuple[tuple[str, str], ...] = (
    ("kafka_exporter", "Topics and consumer groups, by the names of kafka_exporter"),
    ("kafka_broker", "The broker, by the names of Strimzi's dashboards"),
    ("requests", "Requests of Kafka's protocol"),
    ("groups", "Groups and transactions"),
    ("shares", "Share groups"),
    ("storage", "Logs and disks"),
    ("clients", "Connections, quotas, memory for clients, HTTP"),
    ("own", "The broker as such"),
    ("client_metrics.families", "Clients (KIP-714)"),
    ("process", "The process"),
    ("scrape", "The text itself"),
)
"""Modules beside this one, and what their families are about."""


def sections() -> list[tuple[str, tuple[Family, ...]]]:
    return [(doc, tuple(import_module(f"kbroker.observability.{name}").FAMILIES)) for name, doc in SECTIONS]


@cache
def families() -> tuple[Family, ...]:
    return tuple(family for _, found in sections() for family in found)
