"""Whether a resource may have a set of configs: what Kafka's controller checks before it takes an alteration.

Each check gets the whole set as it would be afterwards, and raises ApiError or, for a value, InvalidConfig.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from kbroker.config.broker_configs import BROKER_CONFIGS, base_name, broker_definition
from kbroker.config.broker_rules import check_broker_values
from kbroker.config.definition import ConfigValue, InvalidConfig, Update
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.settings import Settings
from kbroker.config.validators import list_text
from kbroker.errors import ApiError
from kbroker.protocol.errors import ErrorCode
from kbroker.topics import check_name

# Key material belongs to a listener, not to the broker as a whole.
_ONLY_PER_LISTENER = frozenset(
    f"ssl.{rest}"
    for rest in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)
MIN_INSYNC_REPLICAS = "min.insync.replicas"
"""With eligible leader replicas (KIP-966) it is always set for the whole cluster, and for no broker alone."""

_CLUSTER_WIDE_OF_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")

_MATCHED = frozenset(
    f"client_{rest}"
    for rest in ("instance_id", "id", "software_name", "software_version", "source_address", "source_port")
)


def check_topic(settings: Settings, name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_name(name)
    settings.check_topic_configs(configs)


def check_broker_name(settings: Settings, name: str) -> None:
    """The empty name is the whole cluster; otherwise only this broker can be meant."""
    if not name:
        return
    if re.fullmatch(r"[+-]?[0-9]+", name) is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != settings["node.id"]:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {settings['node.id']}, but received {name}",
        )


def check_broker(settings: Settings, name: str, configs: Mapping[str, str], changed: Collection[str]) -> None:
    """Kafka answers all of these as INVALID_REQUEST, single values included, but for the last."""
    fixed = [each for each in configs if each in BROKER_CONFIGS and BROKER_CONFIGS[each].read_only]
    _refuse(fixed, "Cannot update these configs dynamically")
    _refuse(
        [each for each in configs if each in _ONLY_PER_LISTENER],
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    try:
        check_broker_values(settings, _broker_values(configs))
    except InvalidConfig as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if not name:
        _refuse(
            [each for each in configs if _is_per_broker(each)],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    if MIN_INSYNC_REPLICAS in changed and (name or MIN_INSYNC_REPLICAS not in configs):
        whose, what = ("Broker", "altered") if name else ("Cluster", "removed")
        raise InvalidConfig(f"{whose}-level {MIN_INSYNC_REPLICAS} cannot be {what} while ELR is enabled.")


def _broker_values(configs: Mapping[str, str]) -> dict[str, ConfigValue]:
    values: dict[str, ConfigValue] = {}
    for name, text in configs.items():
        definition = broker_definition(name)
        if definition is not None:
            values[name] = definition.parse(text)
    return values


def check_client_metrics(name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for each in configs:
        if each not in CLIENT_METRICS_CONFIGS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {each}")
    values = {each: CLIENT_METRICS_CONFIGS[each].parse(text) for each, text in configs.items()}
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not 100 <= interval_ms <= 3_600_000:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    patterns = values.get("match")
    for pattern in patterns if isinstance(patterns, tuple) else ():
        _check_pattern(pattern)


def check_group(settings: Settings, name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for each in configs:
        if each not in GROUP_CONFIGS:
            raise InvalidConfig(f"Unknown group config name: {each}")
    values = settings.group_values(configs)
    for each in configs:
        _check_bounds(settings, each, values[each])
    for protocol in ("consumer", "share", "streams"):
        session, heartbeat = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
        if _number(values[session]) <= _number(values[heartbeat]):
            raise InvalidConfig(f"{session} must be greater than {heartbeat}")


def _check_bounds(settings: Settings, name: str, value: ConfigValue) -> None:
    """consumer.x lies within the broker's group.consumer.min.x and group.consumer.max.x, if there are any."""
    protocol, _, quantity = name.partition(".")
    quantity = quantity.removeprefix("num.")
    minimum, maximum = f"group.{protocol}.min.{quantity}", f"group.{protocol}.max.{quantity}"
    if minimum in BROKER_CONFIGS and _number(value) < settings[minimum]:
        raise InvalidConfig(f"{name} must be greater than or equal to {minimum}")
    if maximum in BROKER_CONFIGS and _number(value) > settings[maximum]:
        raise InvalidConfig(f"{name} must be less than or equal to {maximum}")


def _check_pattern(pattern: str) -> None:
    name, equals, expression = pattern.partition("=")
    problem = not equals or not expression or "=" in expression or name.strip() not in _MATCHED
    if not problem:
        try:
            re.compile(expression.strip())
        except re.error:
            problem = True
    if problem:
        raise InvalidConfig(f"Illegal client matching pattern: {pattern}")


def _is_per_broker(name: str) -> bool:
    base = base_name(name)
    if base != name:
        return base not in _CLUSTER_WIDE_OF_LISTENERS
    return name in BROKER_CONFIGS and BROKER_CONFIGS[name].update == Update.PER_BROKER


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{why}: {list_text(names)}")


def _number(value: ConfigValue) -> float:
    return value if isinstance(value, (int, float)) else 0
