"""All endpoints, with their whole paths. The router and the OpenAPI document are made of this table."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from kbroker.http.endpoint import Endpoint

PREFIX = "/api/v1"
REST_PROXY_V3 = "/v3"
REST_PROXY_V2_CONSUMERS = "/consumers"
"""Where failures have Confluent's form."""
REST_PROXY_V2_MEDIA = "application/vnd.kafka"
"""In Content-Type or Accept: the request is for version 2, also on paths that the plain API has."""

# Served under /api/v1, and under / as well.
_PLAIN = (
    "kbroker.http.root",
    "kbroker.http.topics",
    "kbroker.http.partitions",
    "kbroker.http.publishing",
    "kbroker.http.transactions",
    "kbroker.http.transaction_work",
    "kbroker.http.fetching",
    "kbroker.http.streams.events",
    "kbroker.http.streams.sockets",
    "kbroker.http.configs",
    "kbroker.http.cluster",
    "kbroker.http.images",
    "kbroker.http.acls",
    "kbroker.http.groups",
    "kbroker.http.consumers",
    "kbroker.http.traces",
)
# With prefixes of their own.
_OTHERS: tuple[tuple[str, str], ...] = (
    ("", "kbroker.http.documentation"),
    ("", "kbroker.http.metrics"),
    ("", "kbroker.http.health"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.clusters"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.topics"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.partitions"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.configs"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.acls"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.groups"),
    (REST_PROXY_V3, "kbroker.http.rest_proxy.v3.records"),
    ("", "kbroker.http.rest_proxy.v2.topics"),
    ("", "kbroker.http.rest_proxy.v2.records"),
    ("", "kbroker.http.rest_proxy.v2.consumers"),
)


def endpoints() -> Iterator[tuple[str, Endpoint]]:
    for name in _PLAIN:
        for endpoint in import_module(name).ENDPOINTS:
            yield PREFIX + endpoint.path, endpoint
            yield endpoint.path, endpoint
    for prefix, name in _OTHERS:
        for endpoint in import_module(name).ENDPOINTS:
            yield prefix + endpoint.path, endpoint


def of_metrics() -> Iterator[tuple[str, Endpoint]]:
    """What a port for metrics has."""
    for name in ("kbroker.http.metrics", "kbroker.http.health"):
        for endpoint in import_module(name).ENDPOINTS:
            yield endpoint.path, endpoint
