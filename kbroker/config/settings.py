"""The settings in force, and where each comes from.

Layers, the strongest first: altered at run time for this broker, altered for the whole cluster, command line,
environment, file, default. A layer that gives a quantity under any of its names (log.retention.hours) hides
what weaker layers say about it under another (log.retention.ms). Static layers are merged and checked when
loading; ``replace_dynamic`` exchanges the two dynamic ones. Values are typed as ``definition`` says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from kbroker.config import files
from kbroker.config.broker_configs import ALIASES, BROKER_CONFIGS, UNITS, base_name
from kbroker.config.definition import ConfigDef, ConfigValue, Field, InvalidConfig, to_text
from kbroker.config.errors import SettingError
from kbroker.config.listeners import (
    GRPC,
    GRPC_NAME,
    HTTP,
    HTTP_NAME,
    METRICS,
    METRICS_NAME,
    Listener,
    advertise_first,
    door,
    move_first,
    parse_advertised,
    parse_listeners,
)
from kbroker.config.protection import broken_promises
from kbroker.config.resource_configs import GROUP_CONFIGS
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.storage.config import LogConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from kbroker.config.description import Described

ENVIRONMENT_PREFIX = "KBROKER_"

# What other commands and the tests read; and Kubernetes describes a service named kbroker to every pod in
# the variables of the second line.
_NOT_SETTINGS = (
    r"KBROKER_(BOOTSTRAP|HTTP_URL|CACHE|MAVEN_REPOSITORY|COMPAT(_\w+)?"
    r"|SERVICE_(HOST|PORT\w*)|PORT(_\w+)?)"
)

_NAMES_OF = {name: group for group in UNITS + ALIASES for name in group}
_MILLISECONDS = {"hours": 3_600_000, "minutes": 60_000}
_NONE: Mapping[str, str] = MappingProxyType({})

Kind = TypeVar("Kind", bound="DataclassInstance")

_USERS = frozenset(("kbroker.users", "kbroker.users.file"))
NO_RETENTION = "log.retention.ms: 0 keeps nothing; give at least 1, or -1 for no limit"


class ConfigSource(IntEnum):
    """Where a value comes from, in DescribeConfigs' numbers."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Settings:
    def __init__(self, static: Mapping[str, str] | None = None, warning: str | None = None) -> None:
        """Settings of checked static values; ``load`` is the way to make them from what a user gave."""
        self.static: dict[str, str] = dict(static or {})
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self.warning = warning
        """One sentence for the log about what was set and does nothing, if there is such."""
        self._values: dict[str, ConfigValue] = {}
        self._topic_defaults: dict[str, ConfigValue] | None = None

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str] | None = None,
        *,
        flags: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        host: str | None = None,
        port: int | None = None,
        advertise: str | None = None,
    ) -> Settings:
        """Merge and check what the file, the environment and the command line say. Raises SettingError."""
        static: dict[str, str] = {}
        unknown: dict[str, str] = {}
        if file is not None:
            path = Path(file)
            settings = files.read(path)
            if files.is_properties(path):
                # Kafka ignores names it does not know (plug-ins', say); its files are taken as they are.
                unknown = {name: text for name, text in settings.items() if static_definition(name) is None}
                settings = {name: text for name, text in settings.items() if name not in unknown}
            _merge(static, settings, str(path))
        _merge(static, _from_environment(environ or {}), "the environment")
        _merge(static, flags or {}, "the command line")
        if not _USERS.isdisjoint(static):
            _ask_for_logins(static)
        if host is not None or port is not None:
            entries = _typed_list("listeners", static.get("listeners"))
            _merge(static, {"listeners": ",".join(move_first(entries, host, port))}, "the command line")
        if advertise is not None:
            advertised = advertise_first(_typed_list("listeners", static.get("listeners")), advertise)
            _merge(static, {"advertised.listeners": advertised}, "the command line")
        _check_protection(static | unknown)
        loaded = cls(static, _warning(static, unknown))
        loaded._check()
        idle = sorted(name for name in static if base_name(name).startswith("ssl."))
        if idle and not any(listener.uses_tls for listener in loaded.all_listeners):
            told = f"no listener speaks TLS, for which there is {', '.join(idle)}"
            loaded.warning = f"{loaded.warning}; {told}" if loaded.warning else told
        return loaded

    def __getitem__(self, name: str) -> Any:
        """The value in force of a broker config, of the type its definition says."""
        try:
            return self._values[name]
        except KeyError:
            definition = BROKER_CONFIGS[name]
            text = self.text(name)
            value = definition.default if text is None else definition.parse(text)
            self._values[name] = value
            return value

    def of_listener(self, listener: str, name: str, mechanism: str | None = None) -> Any:
        """The value in force of a broker config on one listener, and for one SASL mechanism there."""
        for prefix in self.prefixes(listener):
            names = [prefix + name]
            if mechanism is not None:
                names.insert(0, f"{prefix}{mechanism.lower()}.{name}")
            for each in names:
                text = self.text(each)
                if text is not None:
                    return BROKER_CONFIGS[name].parse(text)
        return self[name]

    def prefixes(self, listener: str) -> tuple[str, ...]:
        """Of settings for this listener alone, the strongest first: its own, then whose it takes after."""
        own = f"listener.name.{listener.lower()}."
        if listener not in (HTTP_NAME, GRPC_NAME, METRICS_NAME):
            return (own,)
        if listener == METRICS_NAME:
            return own, *self.prefixes(HTTP_NAME)
        return own, f"listener.name.{self._whose_like(listener).name.lower()}."

    def listener_values(
        self, listener: Listener, names: Collection[str], altered: Mapping[str, str | None] = _NONE
    ) -> dict[str, Any]:
        """The values of broker configs on one listener.

        ``altered``: as if these had been altered for this broker, or removed where they are None.
        """
        settings = self
        if altered:
            settings = Settings(self.static)
            changed = {**self.dynamic_broker, **altered}
            kept = {name: text for name, text in changed.items() if text is not None}
            settings.replace_dynamic(self.dynamic_default, kept)
        return {name: settings.of_listener(listener.name, name) for name in names}

    def text(self, name: str) -> str | None:
        """What was set, as written; None if the default is in force."""
        for layer in (self.dynamic_broker, self.dynamic_default, self.static):
            text = layer.get(name)
            if text is not None:
                return text
        return None

    def replace_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Put the configs altered at run time in force: the cluster's and this broker's own."""
        self.dynamic_default = dict(default)
        self.dynamic_broker = dict(broker)
        self._values.clear()
        self._topic_defaults = None

    @property
    def data_directory(self) -> Path:
        return Path((self["log.dirs"] or self["log.dir"])[0])

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners to open. They are those of the start, even if altered since."""
        return parse_listeners(
            _typed_list("listeners", self.static.get("listeners")),
            self.static.get("listener.security.protocol.map")
            or _default_text("listener.security.protocol.map"),
            _typed_list("controller.listener.names", self.static.get("controller.listener.names")),
        )

    @cached_property
    def advertised_listeners(self) -> dict[str, Listener]:
        """What is configured to be told to the clients of a listener, by its name."""
        return parse_advertised(
            _typed_list("advertised.listeners", self.static.get("advertised.listeners")),
            self.listeners,
            _typed_list("controller.listener.names", self.static.get("controller.listener.names")),
        )

    def http_listener(self, port: str | None = None) -> Listener | None:
        """Where HTTP is served; ``port``: where none is set. None: nowhere."""
        return door(
            HTTP_NAME,
            HTTP,
            self["kbroker.http.port"] or port,
            self._whose_like(HTTP_NAME),
            self["listener.security.protocol.map"],
            self["kbroker.http.host"],
        )

    def grpc_listener(self) -> Listener | None:
        """Where gRPC is served. None: nowhere."""
        return door(
            GRPC_NAME,
            GRPC,
            self["kbroker.grpc.port"],
            self._whose_like(GRPC_NAME),
            self["listener.security.protocol.map"],
            self["kbroker.grpc.host"],
        )

    def metrics_listener(self) -> Listener | None:
        """Where metrics are served besides HTTP; as protected as HTTP is. None: nowhere."""
        http = self.http_listener("0")
        return door(
            METRICS_NAME,
            METRICS,
            self["kbroker.metrics.port"],
            http or self._whose_like(HTTP_NAME),
            self["listener.security.protocol.map"],
            self["kbroker.metrics.host"],
        )

    def _whose_like(self, door_name: str) -> Listener:
        """The listener that HTTP, or gRPC, takes after."""
        http = door_name == HTTP_NAME
        name = self["kbroker.http.listener"] if http else self["kbroker.grpc.listener"]
        if name is None:
            return self.listeners[0]
        for listener in self.listeners:
            if listener.name == name.upper():
                return listener
        known = ", ".join(listener.name for listener in self.listeners)
        setting = f"kbroker.{door_name.lower()}.listener"
        raise SettingError(f"{setting}: there is no listener named {name}, only {known}")

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        """Those for Kafka's protocol, and those for others that may be opened: their port may be any."""
        doors = (self.http_listener("0"), self.grpc_listener(), self.metrics_listener())
        return (*self.listeners, *(each for each in doors if each is not None))

    def asks_who_comes(self, listener: Listener) -> bool:
        """Whether it lets in nobody who is not known by a login or a certificate."""
        if listener.uses_sasl:
            return True
        return listener.uses_tls and self.of_listener(listener.name, "ssl.client.auth") == "required"

    def advertised_address(self, listener: str) -> tuple[str, int] | None:
        """What the clients of a listener are told; None: the address they used."""
        advertised = self.advertised_listeners.get(listener)
        return None if advertised is None else (advertised.host, advertised.port)

    def topic_default(self, name: str) -> ConfigValue:
        """The value of a topic config on topics that do not set it."""
        return self._default_of(TOPIC_CONFIGS[name])

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Every topic config with its value in force. Raises InvalidConfig."""
        if self._topic_defaults is None:
            self._topic_defaults = {name: self._default_of(each) for name, each in TOPIC_CONFIGS.items()}
        values = dict(self._topic_defaults)
        for name, text in overrides.items():
            if name in TOPIC_CONFIGS:
                values[name] = TOPIC_CONFIGS[name].parse(text)
        return values

    def check_topic_configs(self, configs: Mapping[str, str]) -> None:
        """Whether a topic may have these configs of its own. Raises InvalidConfig."""
        for name in configs:
            if name not in TOPIC_CONFIGS:
                raise InvalidConfig(f"{name}: topics have no such config")
        values = self.topic_values(configs)
        lag, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
        if isinstance(lag, int) and isinstance(most, int) and lag > most:
            raise InvalidConfig(f"min.compaction.lag.ms: {lag} is more than max.compaction.lag.ms, {most}")
        if values["remote.storage.enable"]:
            raise InvalidConfig("remote.storage.enable: this broker has no remote storage")

    def typed(self, kind: type[Kind], topic_configs: Mapping[str, str] = _NONE) -> Kind:
        """A dataclass of the values in force of all configs whose definitions name a field of it.

        Those of the broker, and those of a topic that has ``topic_configs`` of its own.
        """
        of_broker, of_topic = _fields_of(kind)
        arguments = {field.name: field.held(self[name]) for name, field in of_broker}
        if of_topic:
            values = self.topic_values(topic_configs)
            arguments.update((field.name, field.held(values[name])) for name, field in of_topic)
        return kind(**arguments)

    def topic_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """What a log of a topic with these configs obeys."""
        config = self.typed(LogConfig, overrides)
        if "internal.segment.bytes" in overrides:
            values: dict[str, Any] = self.topic_values(overrides)
            return replace(config, segment_bytes=values["internal.segment.bytes"])
        return config

    def describe_topic(self, configs: Mapping[str, str]) -> list[Described]:
        """Every config of a topic that has these, for answers to clients."""
        from kbroker.config.description import describe_topic

        return describe_topic(self, configs)

    def group_values(self, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Every group config with its value in force. Raises InvalidConfig."""
        values = {name: self._default_of(each) for name, each in GROUP_CONFIGS.items()}
        for name, text in overrides.items():
            if name in GROUP_CONFIGS:
                values[name] = GROUP_CONFIGS[name].parse(text)
        return values

    def _default_of(self, definition: ConfigDef) -> ConfigValue:
        for synonym in definition.synonyms:
            value: ConfigValue = self[synonym]
            if value is not None:
                unit = _MILLISECONDS.get(synonym.rpartition(".")[2])
                if unit is not None and isinstance(value, int):
                    value *= unit
                if definition.name == "retention.ms" and isinstance(value, int):
                    value = max(-1, value)
                return value
        return definition.default

    def _check(self) -> None:
        """What no single definition can see."""
        _ = self.all_listeners, self.advertised_listeners
        if self.topic_default("retention.ms") == 0:
            raise SettingError(NO_RETENTION)
        if any(listener.uses_sasl for listener in self.all_listeners) or not _USERS.isdisjoint(self.static):
            from kbroker.config.sasl_rules import check_sasl  # who asks nobody need not load it

            check_sasl(self)


@cache
def _fields_of(kind: type) -> tuple[list[tuple[str, Field]], list[tuple[str, Field]]]:
    """The broker configs and the topic configs that go to fields of a dataclass, with their fields."""
    broker, topic = (
        [
            (each.name, each.field)
            for each in table.values()
            if each.field is not None and each.field.of is kind
        ]
        for table in (BROKER_CONFIGS, TOPIC_CONFIGS)
    )
    return broker, topic


def _ask_for_logins(static: dict[str, str]) -> None:
    """Who gives users and says no more means that clients have to log in."""
    if "listeners" not in static and "listener.security.protocol.map" not in static:
        static["listeners"] = _default_text("listeners").replace("PLAINTEXT", "SASL_PLAINTEXT")
    if not any(base_name(name) == "sasl.enabled.mechanisms" for name in static):
        static["sasl.enabled.mechanisms"] = "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN"


def static_definition(name: str) -> ConfigDef | None:
    """Of a config, or of one listener's, that a file or the command line may set."""
    return BROKER_CONFIGS.get(base_name(name))


def unknown_setting(name: str, origin: str) -> SettingError:
    return SettingError(f"{origin}: unknown setting {name}{_hint(name, BROKER_CONFIGS)}")


def _merge(static: dict[str, str], layer: Mapping[str, str], origin: str) -> None:
    for name, text in layer.items():
        definition = static_definition(name)
        if definition is None:
            raise unknown_setting(name, origin)
        try:
            definition.parse(text)
        except InvalidConfig as error:
            raise SettingError(f"{origin}: {error}") from None
    for name in layer:
        for synonym in _NAMES_OF.get(name, ()):
            static.pop(synonym, None)
    static.update(layer)
    identity = layer.get("node.id", layer.get("broker.id"))
    if identity is not None:
        static["node.id"] = static["broker.id"] = identity


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    names: dict[str, str] | None = None
    settings: dict[str, str] = {}
    for variable, value in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or re.fullmatch(_NOT_SETTINGS, variable):
            continue
        if names is None:
            names = {environment_name(name): name for name in BROKER_CONFIGS}
        name = names.get(variable)
        if name is None:
            raise SettingError(f"the environment: unknown setting {variable}{_hint(variable, names)}")
        settings[name] = value
    return settings


def environment_name(name: str) -> str:
    """The environment variable of a setting: log.retention.ms is KBROKER_LOG_RETENTION_MS."""
    return ENVIRONMENT_PREFIX + name.removeprefix("kbroker.").replace(".", "_").upper()


def _hint(name: str, known: Mapping[str, object]) -> str:
    import difflib  # only needed when something is wrong

    nearest = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _check_protection(configs: Mapping[str, str]) -> None:
    controllers = _typed_list("controller.listener.names", configs.get("controller.listener.names"))
    problem = broken_promises(configs, {name.upper() for name in controllers})
    if problem:
        raise SettingError(problem)


def _warning(static: Mapping[str, str], unknown: Collection[str]) -> str | None:
    idle = sorted(name for name in static if not BROKER_CONFIGS[base_name(name)].applies)
    parts = [f"set, but without effect in kbroker: {', '.join(idle)}"] if idle else []
    if unknown:
        parts.append("unknown: " + ", ".join(name + _hint(name, BROKER_CONFIGS) for name in sorted(unknown)))
    factor = static.get("default.replication.factor", "1").strip()
    if factor != "1":
        parts.append(f"default.replication.factor: {factor} copies cannot be kept by one broker")
    directories = _typed_list("log.dirs", static.get("log.dirs"))
    if len(directories) > 1:
        parts.append(f"log.dirs: only {directories[0]} is used")
    return "; ".join(parts) or None


def _typed_list(name: str, text: str | None) -> tuple[str, ...]:
    definition = BROKER_CONFIGS[name]
    value = definition.default if text is None else definition.parse(text)
    return value if isinstance(value, tuple) else ()


def _default_text(name: str) -> str:
    return to_text(BROKER_CONFIGS[name].default) or ""
