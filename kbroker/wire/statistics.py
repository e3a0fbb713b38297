"""How often each API was called, how long it took, and how it failed."""

from __future__ import annotations

from typing import Any, Final

from kbroker.wire.frames import REQUEST
from kbroker.wire.lines import Told, is_error

_MOST_LATENCIES: Final = 20_000  # per API: then every second one is dropped, again and again

COLUMNS: Final = {
    "api": "API",
    "requests": "REQUESTS",
    "responses": "RESPONSES",
    "errors": "ERRORS",
    "p50_ms": "P50 MS",
    "p99_ms": "P99 MS",
    "bytes_in": "BYTES IN",
    "bytes_out": "BYTES OUT",
}


class _OfApi:
    def __init__(self) -> None:
        self.requests = self.responses = self.errors = self.bytes_in = self.bytes_out = 0
        self.latencies: list[float] = []
        self._every = 1  # which share of latencies is kept
        self._seen = 0

    def add_latency(self, latency_ms: float) -> None:
        self._seen += 1
        if self._seen % self._every:
            return
        self.latencies.append(latency_ms)
        if len(self.latencies) >= _MOST_LATENCIES:
            del self.latencies[::2]
            self._every *= 2


class Statistics:
    def __init__(self) -> None:
        self._apis: dict[str, _OfApi] = {}

    def add(self, told: Told) -> None:
        explained = told.event.explained
        if explained is None or explained.api_key is None:
            return
        of = self._apis.setdefault(explained.api, _OfApi())
        if explained.kind == REQUEST:
            of.requests += 1
            of.bytes_in += explained.size
        else:
            of.responses += 1
            of.bytes_out += explained.size
            if told.event.latency_ms is not None:
                of.add_latency(told.event.latency_ms)
        of.errors += is_error(told)

    def rows(self) -> list[dict[str, Any]]:
        """By API, the one with most requests first; bytes in are the requests'."""
        rows = []
        for api, of in sorted(self._apis.items(), key=lambda item: (-item[1].requests, item[0])):
            ordered = sorted(of.latencies)
            rows.append(
                {
                    "api": api,
                    "requests": of.requests,
                    "responses": of.responses,
                    "errors": of.errors,
                    "p50_ms": _percentile(ordered, 50),
                    "p99_ms": _percentile(ordered, 99),
                    "bytes_in": of.bytes_in,
                    "bytes_out": of.bytes_out,
                }
            )
        return rows


def _percentile(ordered: list[float], percent: int) -> float | None:
    if not ordered:
        return None
    rank = -(-len(ordered) * percent // 100)
    return round(ordered[max(rank, 1) - 1], 1)
