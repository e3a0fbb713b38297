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
    from kbroker.observability.exposition import Scrape

_PROMETHEUS: Final = "text/plain"
_OPENMETRICS: Final = "application/openmetrics-text"
_SENT_BYTES: Final = 64 * 1024  # at a time: compressed parts are small
_PARAMETERS: Final = {
    _PROMETHEUS: "version=0.0.4; charset=utf-8",
    _OPENMETRICS: "version=1.0.0; charset=utf-8",
}


async def metrics(request: HttpRequest) -> Response:
    request.resources.check_cluster(AclOperation.DESCRIBE)
    media_type = request.accepts(_PROMETHEUS, _OPENMETRICS) or _PROMETHEUS
    compressed = _takes_gzip(request)
    scrape = request.broker.exposition.scrape(openmetrics=media_type == _OPENMETRICS, compressed=compressed)
    headers = {"vary": "Accept, Accept-Encoding"}
    if compressed:
        headers["content-encoding"] = "gzip"
    media_type = f"{media_type}; {_PARAMETERS[media_type]}"
    return streamed(_parts(request.broker, scrape), media_type, headers=headers)


def _takes_gzip(request: HttpRequest) -> bool:
    for entry in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, quality = entry.partition(";")
        if coding.strip() == "gzip":
            return quality.strip() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def _parts(broker: Broker, scrape: Scrape) -> AsyncGenerator[bytes]:
    made = bytearray()
    while not scrape.ended:
        made += await settled(broker.long_requests.run_in_turn(scrape.part()))
        if len(made) >= _SENT_BYTES or scrape.ended:
            yield bytes(made)
            made.clear()


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
