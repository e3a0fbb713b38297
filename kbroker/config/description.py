"""Configs as DescribeConfigs shows them: the value in force, its source, and the synonyms it was chosen from.

Synonyms go from the strongest to the weakest, by Kafka's rule: what the resource sets itself, then, layer by
layer of the broker's settings, every name of the quantity. What comes before the first entry under the main
broker name is dropped: a default in log.retention.hours alone is no synonym of log.retention.ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import dropwhile
from typing import NamedTuple

from kbroker.config.broker_configs import (
    BROKER_CONFIGS,
    THROTTLE_CONFIGS,
    UNITS,
    base_name,
    broker_definition,
)
from kbroker.config.definition import ConfigDef, ConfigType, ConfigValue, InvalidConfig, to_text
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.settings import ConfigSource, Settings
from kbroker.config.topic_configs import TOPIC_CONFIGS

_NAMES_OF = {name: group for group in UNITS for name in group}
_NAMES_OF["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class Described(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: list[Synonym]
    doc: str | None
    read_only: bool = False
    is_sensitive: bool = False


def describe_topic(settings: Settings, configs: Mapping[str, str]) -> list[Described]:
    """Every topic config of a topic that sets ``configs`` itself."""
    values = settings.topic_values(configs)
    described = []
    for name, definition in TOPIC_CONFIGS.items():
        if definition.internal and name not in configs:
            continue
        text = to_text(values[name])
        chain = _broker_chain(settings, definition.synonyms[0]) if definition.synonyms else []
        if name in configs:
            chain.insert(0, Synonym(name, text, ConfigSource.TOPIC_CONFIG))
        described.append(_described(definition, text, chain))
    return described


def describe_group(settings: Settings, configs: Mapping[str, str]) -> list[Described]:
    """Those of group protocols that this broker has: the others cannot be set, either."""
    values = settings.group_values(configs)
    described = []
    for name, definition in GROUP_CONFIGS.items():
        if not definition.applies:
            continue
        text = to_text(values[name])
        if definition.synonyms:
            chain = _broker_chain(settings, definition.synonyms[0])
        else:
            chain = [Synonym(name, to_text(definition.default), ConfigSource.DEFAULT_CONFIG)]
        if name in configs:
            chain.insert(0, Synonym(name, text, ConfigSource.GROUP_CONFIG))
        described.append(_described(definition, text, chain))
    return described


def describe_client_metrics(configs: Mapping[str, str]) -> list[Described]:
    described = []
    for name, definition in CLIENT_METRICS_CONFIGS.items():
        own = configs.get(name)
        text = to_text(definition.default if own is None else definition.parse(own))
        chain = [] if own is None else [Synonym(name, text, ConfigSource.CLIENT_METRICS_CONFIG)]
        described.append(_described(definition, text, chain))
    return described


def describe_broker(settings: Settings) -> list[Described]:
    """Every config of this broker, whatever layer it comes from."""
    described = [
        _broker_config(settings, definition, to_text(settings[name]))
        for name, definition in BROKER_CONFIGS.items()
        if not definition.internal or settings.text(name) is not None
    ]
    altered = {**settings.dynamic_default, **settings.dynamic_broker}
    described.extend(_extra_broker_config(settings, name) for name in altered if name not in BROKER_CONFIGS)
    return described


def describe_cluster(settings: Settings) -> list[Described]:
    """What was altered for the whole cluster, and nothing else."""
    described = []
    for name, text in settings.dynamic_default.items():
        definition = BROKER_CONFIGS.get(name)
        if definition is None:
            entry = _extra_broker_config(settings, name)
        else:
            entry = _broker_config(settings, definition, text)
        chain = [each for each in entry.synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG]
        described.append(entry._replace(synonyms=chain, source=_source(chain)))
    return described


def describe_loggers(levels: Mapping[str, str]) -> list[Described]:
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return [Described(name, level, source, ConfigType.UNKNOWN, [], "") for name, level in levels.items()]


def _broker_config(settings: Settings, definition: ConfigDef, text: str | None) -> Described:
    chain = _broker_chain(settings, definition.name)
    if definition.sensitive:
        text = None
        chain = [each._replace(value=None) for each in chain]
    return _described(definition, text, chain, read_only=definition.read_only)


def _extra_broker_config(settings: Settings, name: str) -> Described:
    """A config that was altered and is no setting: a throttle, a listener's own, or one nobody knows."""
    definition = broker_definition(name)
    text = settings.text(name)
    chain = _broker_chain(settings, name)
    if definition is None or definition.sensitive:
        # What nobody knows may be a secret.
        hidden = [each._replace(value=None) for each in chain]
        type_ = ConfigType.UNKNOWN if definition is None else definition.type
        doc = None if definition is None else definition.doc
        return Described(name, None, _source(chain), type_, hidden, doc, True, True)
    try:
        value: ConfigValue = None if text is None else definition.parse(text)
    except InvalidConfig:
        value = text
    read_only = name not in THROTTLE_CONFIGS
    return Described(name, to_text(value), _source(chain), definition.type, chain, definition.doc, read_only)


def _described(
    definition: ConfigDef, text: str | None, chain: list[Synonym], *, read_only: bool = False
) -> Described:
    name, type_, sensitive = definition.name, definition.type, definition.sensitive
    return Described(name, text, _source(chain), type_, chain, definition.doc, read_only, sensitive)


def _broker_chain(settings: Settings, name: str) -> list[Synonym]:
    base = base_name(name)
    names = (name, base) if base != name else _NAMES_OF.get(name, (name,))
    layers = (
        (settings.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (settings.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (settings.static, ConfigSource.STATIC_BROKER_CONFIG),
    )
    chain = [
        Synonym(each, layer[each], source) for layer, source in layers for each in names if each in layer
    ]
    for each in names:
        definition = BROKER_CONFIGS.get(each)
        text = None if definition is None else to_text(definition.default)
        if text is not None:
            chain.append(Synonym(each, text, ConfigSource.DEFAULT_CONFIG))
    return list(dropwhile(lambda each: each.name != name, chain))


def _source(chain: list[Synonym]) -> ConfigSource:
    return chain[0].source if chain else ConfigSource.DEFAULT_CONFIG
