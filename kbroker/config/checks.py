"""Whether a resource may have a set of configs: what Kafka's controller checks before it takes an alteration.

Each check gets the whole set as it would be afterwards, and raises ApiError or, for a value, InvalidConfig.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from kbroker.config.broker_configs import BROKER_CONFIGS, base_name, broker_definition
from kbroker.config.broker_rules import check_bounds, check_broker_values
from kbroker.config.definition import ConfigValue, InvalidConfig, Update, invalid
from kbroker.config.protection import broken_promises
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.settings import Settings
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.topics.names import check_name

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

_MATCHED = tuple(
    f"client_{rest}"
    for rest in ("instance_id", "id", "software_name", "software_version", "source_address", "source_port")
)


def check_topic(settings: Settings, name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A topic needs a name.")
    check_name(name)
    settings.check_topic_configs(configs)


def check_broker_name(settings: Settings, name: str) -> None:
    """The empty name is the whole cluster; otherwise only this broker can be meant."""
    if name:
        check_node_id(settings, name)


def check_node_id(settings: Settings, name: str) -> None:
    if re.fullmatch(r"[+-]?[0-9]{1,20}", name) is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f'"{name}" is not the number of a broker.')
    own = settings["node.id"]
    if int(name) != own:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"There is no broker {name} here, only broker {own}.")


def check_broker(settings: Settings, name: str, configs: Mapping[str, str], changed: Collection[str]) -> None:
    """Kafka answers all of these as INVALID_REQUEST, single values included, but for the last."""
    fixed = [each for each in configs if each in BROKER_CONFIGS and BROKER_CONFIGS[each].read_only]
    _refuse(fixed, "cannot change while the broker runs")
    _refuse(
        [each for each in configs if each in _ONLY_PER_LISTENER],
        "goes with one listener; put listener.name.LISTENER. before the name",
    )
    try:
        check_broker_values(settings, _broker_values(configs))
    except InvalidConfig as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
    promised = broken_promises({each: configs[each] for each in changed if each in configs})
    if promised:
        raise ApiError(ErrorCode.INVALID_REQUEST, promised)
    if not name:
        _refuse(
            [each for each in configs if _is_per_broker(each)],
            "goes with one broker, not with the whole cluster",
        )
    if MIN_INSYNC_REPLICAS in changed and (name or MIN_INSYNC_REPLICAS not in configs):
        problem = "goes with the whole cluster, not with one broker" if name else "always has a value"
        raise InvalidConfig(f"{MIN_INSYNC_REPLICAS}: {problem}")


def _broker_values(configs: Mapping[str, str]) -> dict[str, ConfigValue]:
    values: dict[str, ConfigValue] = {}
    for name, text in configs.items():
        definition = broker_definition(name)
        if definition is not None:
            values[name] = definition.parse(text)
    return values


def check_client_metrics(name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A client metrics subscription needs a name.")
    for each in configs:
        if each not in CLIENT_METRICS_CONFIGS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{each}: client metrics have no such config")
    values = {each: CLIENT_METRICS_CONFIGS[each].parse(text) for each, text in configs.items()}
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not 100 <= interval_ms <= 3_600_000:
        problem = invalid("interval.ms", interval_ms, "is not from 100 to 3600000")
        raise ApiError(ErrorCode.INVALID_REQUEST, str(problem))
    patterns = values.get("match")
    for pattern in patterns if isinstance(patterns, tuple) else ():
        _check_pattern(pattern)


def check_group(settings: Settings, name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A group needs a name.")
    for each in configs:
        if each not in GROUP_CONFIGS:
            raise InvalidConfig(f"{each}: groups have no such config")
    values = settings.group_values(configs)
    for each in configs:
        _check_bounds(settings, each, values[each])
    for protocol in ("consumer", "share", "streams"):
        session, heartbeat = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
        if _number(values[session]) <= _number(values[heartbeat]):
            raise invalid(session, values[session], f"is not more than {heartbeat}, {values[heartbeat]}")


def _check_bounds(settings: Settings, name: str, value: ConfigValue) -> None:
    """consumer.x lies within the broker's group.consumer.min.x and group.consumer.max.x, if there are any."""
    protocol, _, quantity = name.partition(".")
    quantity = quantity.removeprefix("num.")
    bounds = f"group.{protocol}.min.{quantity}", f"group.{protocol}.max.{quantity}"
    check_bounds(settings, name, _number(value), *bounds)


def _check_pattern(pattern: str) -> None:
    name, equals, expression = pattern.partition("=")
    problem = not equals or not expression or "=" in expression or name.strip() not in _MATCHED
    if not problem:
        try:
            re.compile(expression.strip())
        except re.error:
            problem = True
    if problem:
        raise invalid("match", pattern, f"is not NAME=EXPRESSION with a name of {', '.join(_MATCHED)}")


def _is_per_broker(name: str) -> bool:
    base = base_name(name)
    if base != name:
        return base not in _CLUSTER_WIDE_OF_LISTENERS
    return name in BROKER_CONFIGS and BROKER_CONFIGS[name].update == Update.PER_BROKER


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{', '.join(names)}: {why}")


def _number(value: ConfigValue) -> float:
    return value if isinstance(value, (int, float)) else 0
