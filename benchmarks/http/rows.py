"""All rows of the benchmark, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.http import beside_rows, request_rows, start_rows
from benchmarks.http.brokers import HttpBroker

Numbers = dict[str, float]
LIMIT = "uvicorn alone, which answers 200"
BEFORE = "before there was HTTP"


class Row(NamedTuple):
    kind: str
    name: str
    run: Callable[[HttpBroker, float], Iterable[Numbers]]
    """What one round gives, at a scale."""


def rows(before: Path | None) -> list[Row]:
    """``before``: a checkout of kbroker without HTTP, if there is one."""
    limit = Row("requests", LIMIT, lambda _, scale: [request_rows.run_limit(scale)])
    return [limit, *map(_request, request_rows.LOADS), *_starts(before), *map(_beside, beside_rows.ROWS)]


def _request(load: request_rows.Load) -> Row:
    return Row("requests", load.name, lambda broker, scale: [request_rows.run(load, broker, scale)])


def _beside(name: str) -> Row:
    kind = beside_rows.ROWS[name]
    return Row("beside", name, lambda broker, scale: [beside_rows.run(kind, broker, scale)])


def _starts(before: Path | None) -> list[Row]:
    def unused(name: str, http_port: str | None, checkout: Path | None) -> Row:
        run = partial(start_rows.run_unused, http_port, checkout)
        return Row("start", name, lambda _, scale: run(scale))

    made = [unused("without the port", "off", None), unused("with the port, which nobody uses", "0", None)]
    if before is not None:
        made.insert(0, unused(BEFORE, None, before))
    return [*made, Row("first use", "first request", lambda _, scale: start_rows.run_first_use(scale))]
