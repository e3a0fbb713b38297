"""How values of broker configs must fit each other, and what is in force, to be altered at run time."""

from __future__ import annotations

from collections.abc import Mapping

from kbroker.config.definition import ConfigValue, InvalidConfig
from kbroker.config.settings import Settings

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
        raise _requirement("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    if not values.keys().isdisjoint(("log.cleaner.threads", "log.cleaner.dedupe.buffer.size")):
        _check_cleaner(settings, values)
    if "max.connections.per.ip" in values or _OVERRIDES in values:
        _check_connections(settings, values)
    for name in values.keys() & _THREAD_POOLS:
        _check_pool(name, _integer(settings, values, name), settings[name])
    for protocol in ("consumer", "share", "streams"):
        name = f"group.{protocol}.assignment.interval.ms"
        if name in values:
            _check_interval(settings, protocol, _integer(settings, values, name))


def _check_cleaner(settings: Settings, values: Mapping[str, ConfigValue]) -> None:
    threads, current = _integer(settings, values, "log.cleaner.threads"), settings["log.cleaner.threads"]
    if threads < 1 or _integer(settings, values, "log.cleaner.dedupe.buffer.size") // threads <= _MEBIBYTE:
        raise _requirement("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    if threads > 2 * current:
        raise InvalidConfig(
            f"Log cleaner threads cannot be increased to more than double the current value {current}"
        )


def _check_connections(settings: Settings, values: Mapping[str, ConfigValue]) -> None:
    overrides = str(values.get(_OVERRIDES, settings[_OVERRIDES]))
    if _integer(settings, values, "max.connections.per.ip") == 0 and not overrides:
        raise _requirement(f"max.connections.per.ip can be set to zero only if {_OVERRIDES} property is set.")
    for entry in filter(None, (part.strip() for part in overrides.split(","))):
        host, _, count = entry.rpartition(":")
        if not host or not count.strip().isdecimal():
            raise InvalidConfig(f"Error parsing configuration property '{_OVERRIDES}': {entry}")


def _integer(settings: Settings, values: Mapping[str, ConfigValue], name: str) -> int:
    value = values.get(name, settings[name])
    return value if isinstance(value, int) else 0


def _check_pool(name: str, wanted: int, current: int) -> None:
    problem = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
    if wanted < current // 2:
        raise InvalidConfig(f"{problem} be at least half the current value {current}")
    if wanted > current * 2:
        raise InvalidConfig(f"{problem} not be greater than double the current value {current}")


def _check_interval(settings: Settings, protocol: str, interval_ms: int) -> None:
    name = f"group.{protocol}.assignment.interval.ms"
    minimum, maximum = (f"group.{protocol}.{bound}.assignment.interval.ms" for bound in ("min", "max"))
    if interval_ms < settings[minimum]:
        raise InvalidConfig(f"{name} must be greater than or equal to {minimum}")
    if interval_ms > settings[maximum]:
        raise InvalidConfig(f"{name} must be less than or equal to {maximum}")


def _requirement(sentence: str) -> InvalidConfig:
    return InvalidConfig(f"requirement failed: {sentence}")
