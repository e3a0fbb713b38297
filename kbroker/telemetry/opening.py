"""Client telemetry of a broker: its subscriptions are config resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.resources import ResourceType
from kbroker.telemetry.clients import ClientTelemetry

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.telemetry.clients import Receiver


def open_telemetry(broker: Broker, receiver: Receiver) -> ClientTelemetry:
    telemetry = ClientTelemetry(broker.settings["telemetry.max.bytes"], receiver, broker.worker)
    resources = broker.dynamic_configs

    def changed(resource_type: ResourceType, name: str, _: frozenset[str] = frozenset()) -> None:
        if resource_type is ResourceType.CLIENT_METRICS:
            telemetry.update_subscription(name, resources.configs(resource_type, name))

    for name in resources.names(ResourceType.CLIENT_METRICS):
        changed(ResourceType.CLIENT_METRICS, name)
    resources.on_change(changed)
    return telemetry
