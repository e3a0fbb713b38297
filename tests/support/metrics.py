"""GET /metrics, read by Prometheus' own parsers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from kbroker.requests.long_requests import LongRequests
from tests.support.http_client import HttpClient

if TYPE_CHECKING:
    from kbroker.broker import Broker

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Samples:
    """What one scrape told."""

    def __init__(self, parsed: Iterable[Metric]) -> None:
        self.found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.families: dict[str, str] = {}
        """Their types."""
        for family in parsed:
            self.families[family.name] = family.type
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.found, f"{key} is there twice"
                self.found[key] = sample.value

    def of(self, name: str, **labels: str) -> float:
        return self.found[name, frozenset(labels.items())]

    def sum(self, name: str, **labels: str) -> float:
        """Over all series that have these labels."""
        wanted = set(labels.items())
        return sum(value for (each, of), value in self.found.items() if each == name and wanted <= of)

    def labels(self, name: str) -> list[dict[str, str]]:
        """Of all series of that name."""
        return [dict(of) for each, of in self.found if each == name]


def scrape(http: HttpClient, *, openmetrics: bool = False) -> Samples:
    answer = http.get("/metrics", Accept=OPENMETRICS if openmetrics else "text/plain")
    assert answer.status == 200, answer
    parse = parse_openmetrics if openmetrics else parse_prometheus
    return Samples(parse(answer.body.decode()))


def scraped(broker: Broker) -> Samples:
    """Of a broker in the process, whose logs and threads answer at once."""
    running = broker.exposition.scrape(openmetrics=False)
    text = b""
    while not running.ended:
        part = LongRequests(broker.scheduler).run(running.part())
        assert isinstance(part, bytes)
        text += part
    return Samples(parse_prometheus(text.decode()))
