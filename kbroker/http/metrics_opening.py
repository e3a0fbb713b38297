"""What is loaded with the first connection to the port for metrics: HTTP with few endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.http.opening import Http
from kbroker.http.table import of_metrics

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker


def opened(broker: Broker, logins: ListenerLogins | None) -> Http:
    return Http(broker, logins, of_metrics(), broker.settings.metrics_listener())
