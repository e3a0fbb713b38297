"""The quotas of a broker, put together with what enforces them. Loaded with the first quota that is set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kbroker.quotas.connection_rates import ConnectionRates
from kbroker.quotas.entities import CONNECTION_CREATION_RATE, IP, address
from kbroker.quotas.meters import Windows
from kbroker.quotas.table import QuotaTable
from kbroker.quotas.throttling import Throttling

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.settings import Settings
    from kbroker.quotas.entities import Entity

UNLIMITED = (1 << 31) - 1
"""The rate that is none."""


def open_quotas(broker: Broker, stored: Iterable[tuple[str, str]]) -> QuotaTable:
    """``stored``: keys and values in the catalog."""
    table = QuotaTable(broker.catalog, stored)
    settings = broker.settings
    seconds = settings["controller.quota.window.size.seconds"]
    mutation_windows = Windows(settings["controller.quota.window.num"], seconds * 1000)
    throttling = Throttling(_windows(settings), mutation_windows, broker.clock)

    def changed(altered: Mapping[Entity, Mapping[str, float]]) -> None:
        broker.throttling = throttling if throttling.put_in_force(altered.items()) else None
        if any(entity[0][0] == IP for entity in altered):
            broker.limit_connections()

    table.on_change(changed)
    broker.throttling = throttling if throttling.put_in_force(table.items()) else None
    return table


def open_connection_rates(settings: Settings) -> ConnectionRates:
    return ConnectionRates(_windows(settings), settings["socket.listen.backlog.size"])


def connection_rates_in_force(
    rates: ConnectionRates, settings: Settings, table: QuotaTable | None
) -> ConnectionRates | None:
    """The same with the rates that are set now; None: there are none."""
    listeners = {
        listener.name: rate
        for listener in settings.all_listeners
        if (rate := settings.of_listener(listener.name, "max.connection.creation.rate")) < UNLIMITED
    }
    broker = settings["max.connection.creation.rate"]
    ips: dict[str | None, float] = {}
    for entity, values in () if table is None else table.items():
        ((type_, name), *_) = entity
        if type_ == IP and CONNECTION_CREATION_RATE in values:
            ips[None if name is None else address(name)] = values[CONNECTION_CREATION_RATE]
    enforced = rates.put_in_force(broker if broker < UNLIMITED else None, listeners, ips)
    return rates if enforced else None


def _windows(settings: Settings) -> Windows:
    return Windows(settings["quota.window.num"], settings["quota.window.size.seconds"] * 1000)
