"""The metrics, for Prometheus and whoever reads what it reads; for who may describe the cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from kbroker.http.answers import streamed
from kbroker.http.endpoint import STRING, Answer, Endpoint
from kbroker.network.awaiting import settled
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

_PROMETHEUS: Final = "text/plain"
_OPENMETRICS: Final = "application/openmetrics-text"
_PARAMETERS: Final = {
    _PROMETHEUS: "version=0.0.4; charset=utf-8",
    _OPENMETRICS: "version=1.0.0; charset=utf-8",
}


async def metrics(request: HttpRequest) -> Response:
    request.resources.check_cluster(AclOperation.DESCRIBE)
    media_type = request.accepts(_PROMETHEUS, _OPENMETRICS) or _PROMETHEUS
    parts = _parts(request.broker, openmetrics=media_type == _OPENMETRICS)
    return streamed(parts, f"{media_type}; {_PARAMETERS[media_type]}")


async def _parts(broker: Broker, *, openmetrics: bool) -> AsyncGenerator[bytes]:
    scrape = broker.exposition.scrape(openmetrics=openmetrics)
    while not scrape.ended:
        part = await settled(broker.long_requests.run_in_turn(scrape.part()))
        if part:
            yield part


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        metrics,
        "All metrics, as text for Prometheus, or as OpenMetrics for who asks for that.",
        answers={200: Answer("The metrics.", {_PROMETHEUS: STRING, _OPENMETRICS: STRING})},
        tag="metrics",
        description="Which there are: docs/metrics.md. Only for who may describe the cluster.",
    ),
)
