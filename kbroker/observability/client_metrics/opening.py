"""The receiver of client metrics, given what it needs of the broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.observability.client_metrics.last_values import LastValues
from kbroker.observability.client_metrics.receiver import Receiver

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.client_metrics.forwarding import Forwarder
    from kbroker.telemetry.files import TelemetryFiles


def open_receiver(broker: Broker) -> Receiver:
    values = LastValues(lambda: int(broker.settings["kbroker.telemetry.max.series"]))
    return Receiver(values, _files(broker), _forwarder(broker))


def _files(broker: Broker) -> TelemetryFiles | None:
    directory = broker.settings["kbroker.telemetry.directory"]
    if not directory:
        return None
    from kbroker.telemetry.files import TelemetryFiles

    return TelemetryFiles(Path(directory), broker.worker)


def _forwarder(broker: Broker) -> Forwarder | None:
    if "otlp" not in broker.settings["kbroker.telemetry.exporters"]:
        return None
    from kbroker.observability.client_metrics.forwarding import Forwarder

    return Forwarder(broker.otlp, str(broker.cluster.node_id))
