"""Client telemetry of a broker: its subscriptions are config resources, its receiver a directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.config.resources import ResourceType

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.telemetry.clients import ClientTelemetry


def open_telemetry(broker: Broker) -> ClientTelemetry | None:
    """None: no receiver is configured, and clients are not asked for metrics."""
    directory = broker.settings["kbroker.telemetry.directory"]
    if not directory:
        return None
    from kbroker.telemetry.clients import ClientTelemetry
    from kbroker.telemetry.files import TelemetryFiles

    files = TelemetryFiles(Path(directory), broker.worker)
    telemetry = ClientTelemetry(broker.settings["telemetry.max.bytes"], files.receive)
    resources = broker.dynamic_configs

    def changed(resource_type: ResourceType, name: str, _: frozenset[str] = frozenset()) -> None:
        if resource_type is ResourceType.CLIENT_METRICS:
            telemetry.update_subscription(name, resources.configs(resource_type, name))

    for name in resources.names(ResourceType.CLIENT_METRICS):
        changed(ResourceType.CLIENT_METRICS, name)
    resources.on_change(changed)
    return telemetry
