"""A connection to the port for metrics: HTTP, spoken by what serves nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kbroker.config.listeners import METRICS, METRICS_NAME
from kbroker.http.connection import HttpConnection, HttpHost

if TYPE_CHECKING:
    from kbroker.http.connection import Speakers
    from kbroker.pending import Pending


class MetricsHost(HttpHost, Protocol):
    def speakers(self, name: str = ...) -> Pending[Speakers]: ...


class MetricsConnection(HttpConnection):
    protocol = METRICS

    def __init__(
        self, host: MetricsHost, listener: str, *, secure: bool = False, asks_for_logins: bool = False
    ) -> None:
        super().__init__(host, listener, secure=secure, asks_for_logins=asks_for_logins)
        self._metrics_host = host

    def _begin(self) -> None:
        self._metrics_host.speakers(METRICS_NAME).then(self._loaded)
