"""How values of broker configs must fit each other, and what is in force, to be altered at run time."""

from __future__ import annotations

from collections.abc import Mapping

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.definition import ConfigValue, InvalidConfig, invalid
from kbroker.config.settings import NO_RETENTION, Settings

_MEBIBYTE = 1 << 20
_OVERRIDES = "max.connections.per.ip.overrides"

# Kafka resizes a pool of threads to no less than half and no more than double at once. kbroker has no such
# pools, but a tool that relies on the refusal gets it.
_THREAD_POOLS = frozenset(
    (
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    )
)


def check_broker_values(settings: Settings, values: Mapping[str, ConfigValue]) -> None:
    """Raises InvalidConfig if the values may not replace those in force."""
    if values.get("log.retention.ms") == 0:
        raise InvalidConfig(NO_RETENTION)
    if not values.keys().isdisjoint(("log.cleaner.threads", "log.cleaner.dedupe.buffer.size")):
        _check_cleaner(settings, values)
    if "max.connections.per.ip" in values or _OVERRIDES in values:
        _check_connections(settings, values)
    for name in values.keys() & _THREAD_POOLS:
        _check_pool(name, _integer(settings, values, name), settings[name])
    for protocol in ("consumer", "share", "streams"):
        name = f"group.{protocol}.assignment.interval.ms"
        if name in values:
            bounds = (
                f"group.{protocol}.min.assignment.interval.ms",
                f"group.{protocol}.max.assignment.interval.ms",
            )
            check_bounds(settings, name, _integer(settings, values, name), *bounds)


def check_bounds(settings: Settings, name: str, value: float, minimum: str, maximum: str) -> None:
    """Raises InvalidConfig if the value is not between those of two broker configs, if there are such."""
    if minimum in BROKER_CONFIGS and value < settings[minimum]:
        raise invalid(name, value, f"is less than {minimum}, {settings[minimum]}")
    if maximum in BROKER_CONFIGS and value > settings[maximum]:
        raise invalid(name, value, f"is more than {maximum}, {settings[maximum]}")


def _check_cleaner(settings: Settings, values: Mapping[str, ConfigValue]) -> None:
    threads = _integer(settings, values, "log.cleaner.threads")
    buffer = _integer(settings, values, "log.cleaner.dedupe.buffer.size")
    if threads < 1:
        raise invalid("log.cleaner.threads", threads, "is too small, the least is 1")
    if buffer // threads <= _MEBIBYTE:
        problem = f"is too small: {threads} cleaner thread(s) need more than {_MEBIBYTE} each"
        raise invalid("log.cleaner.dedupe.buffer.size", buffer, problem)
    _check_growth("log.cleaner.threads", threads, settings["log.cleaner.threads"])


def _check_connections(settings: Settings, values: Mapping[str, ConfigValue]) -> None:
    overrides = str(values.get(_OVERRIDES, settings[_OVERRIDES]))
    if _integer(settings, values, "max.connections.per.ip") == 0 and not overrides:
        raise invalid("max.connections.per.ip", 0, f"shuts everybody out unless {_OVERRIDES} is set")


def _integer(settings: Settings, values: Mapping[str, ConfigValue], name: str) -> int:
    value = values.get(name, settings[name])
    return value if isinstance(value, int) else 0


def _check_pool(name: str, wanted: int, current: int) -> None:
    if wanted < current // 2:
        raise invalid(name, wanted, f"is less than half of what is in force, {current}")
    _check_growth(name, wanted, current)


def _check_growth(name: str, wanted: int, current: int) -> None:
    if wanted > current * 2:
        raise invalid(name, wanted, f"is more than twice what is in force, {current}")
