"""Connections, quotas, the budget of bytes held for clients, and requests by HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import COUNTER, GAUGE, Family, Number, value, values
from kbroker.observability.histograms import histogram

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.traffic import ListenerTraffic
    from kbroker.times import Times

Found = Iterator[tuple[tuple[str, ...], Number]]


def _by_listener(name: str, kind: str, doc: str, read: Callable[[ListenerTraffic], int]) -> Family:
    def found(broker: Broker) -> Found:
        for listener, traffic in sorted(broker.traffic.listeners.items()):
            yield (listener,), read(traffic)

    return values(name, kind, doc, ("listener",), found)


def _http_requests(broker: Broker) -> Found:
    for (method, path, status), count in sorted(broker.traffic.http_requests.items()):
        yield (method, path, str(status)), count


def _http_times(broker: Broker) -> Iterator[tuple[tuple[str, ...], Times]]:
    yield from sorted(broker.traffic.http_times.items(), key=lambda each: each[0])


def _throttled(broker: Broker) -> int:
    return 0 if broker.throttling is None else broker.throttling.throttled


def _throttled_seconds(broker: Broker) -> float:
    return 0.0 if broker.throttling is None else broker.throttling.throttled_ms / 1000


FAMILIES = (
    _by_listener(
        "kbroker_connections", GAUGE, "Open connections.", lambda traffic: traffic.came - traffic.went
    ),
    _by_listener(
        "kbroker_connections_opened_total", COUNTER, "Connections that came.", lambda traffic: traffic.came
    ),
    _by_listener(
        "kbroker_connections_refused_total",
        COUNTER,
        "Those that were closed at once, for there were too many.",
        lambda traffic: traffic.refused,
    ),
    value("kbroker_throttled_requests_total", COUNTER, "Requests above a quota.", _throttled),
    value(
        "kbroker_throttle_seconds_total",
        COUNTER,
        "How long clients were told to wait because of quotas.",
        _throttled_seconds,
    ),
    value(
        "kbroker_budget_limit_bytes",
        GAUGE,
        "How much may be held for clients (queued.max.request.bytes).",
        lambda broker: broker.budget.limit,
    ),
    value(
        "kbroker_budget_used_bytes", GAUGE, "How much is held for clients.", lambda broker: broker.budget.used
    ),
    value(
        "kbroker_budget_waiting",
        GAUGE,
        "Requests and answers that wait until something of the budget is given back.",
        lambda broker: broker.budget.waiting,
    ),
    value(
        "kbroker_fetch_sessions",
        GAUGE,
        "Fetch sessions (KIP-227).",
        lambda broker: len(broker.fetch_sessions),
    ),
    values(
        "kbroker_http_requests_total",
        COUNTER,
        "Requests by HTTP; the path is that of the endpoint, and empty where there is none.",
        ("method", "path", "status"),
        _http_requests,
    ),
    histogram(
        "kbroker_http_request_seconds",
        "Time from the head of a request by HTTP to its answer, which a stream begins at once.",
        ("method", "path"),
        _http_times,
    ),
)
