"""A definition says whether a config does something; here the code is asked."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from kbroker.config.broker_configs import ALIASES, BROKER_CONFIGS
from kbroker.config.checks import check_group
from kbroker.config.definition import ConfigDef, InvalidConfig
from kbroker.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kbroker.config.settings import Settings
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.environment import GroupSettings
from kbroker.coordinators.groups.share.settings import ShareGroupSettings
from kbroker.coordinators.groups.streams.settings import StreamsGroupSettings
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.transactions.environment import TransactionSettings
from kbroker.groups.opening import consumer_group_settings, group_settings
from kbroker.groups.share_settings import share_group_settings, share_settings
from kbroker.groups.streams_settings import streams_group_settings
from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.transactions.opening import transaction_settings
from tests.config.reads import Reads, filled_in, methods_of

ROOT = Path(__file__).parents[2]
# Commands are clients of a broker. Definitions and checks of configs do not obey them.
OTHERS = {"cli", "config", "pipeline"}
TABLES = {
    "broker": BROKER_CONFIGS,
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
    "client metrics": CLIENT_METRICS_CONFIGS,
}
HONOURED = [
    pytest.param(each, id=f"{kind}: {each.name}")
    for kind, table in TABLES.items()
    for each in table.values()
    if each.applies
]
HOLDERS = {"LogConfig": LogConfig, "DirectoryConfig": DirectoryConfig}
BOUNDS = {
    bound: (name, step)
    for name in GROUP_CONFIGS
    if GROUP_CONFIGS[name].applies
    for protocol, _, quantity in (name.partition("."),)
    for end, step in (("min", -1), ("max", +1))
    if (bound := f"group.{protocol}.{end}.{quantity.removeprefix('num.')}") in BROKER_CONFIGS
}


def read_by_the_broker() -> Reads:
    reads = Reads()
    sources = [*(ROOT / "kbroker").glob("**/*.py"), *(ROOT / "storage").glob("**/*.py")]
    for source in sources:
        if OTHERS.isdisjoint(source.relative_to(ROOT).parts) and source != ROOT / "storage/config.py":
            reads.add(source.read_text())
    reads.add((ROOT / "kbroker/cli/serve.py").read_text())
    _follow(reads, "storage/config.py", "LogConfig", reads.fields)
    _follow(reads, "kbroker/config/settings.py", "Settings", reads.names)
    return reads


def _follow(reads: Reads, source: str, class_name: str, found: set[str]) -> None:
    """What a method or property reads is read if somebody calls it; one may call another."""
    methods = methods_of((ROOT / source).read_text(), class_name)
    waiting = [name for name in methods if name in reads.fields]
    while waiting:
        read = methods.pop(waiting.pop(), set())
        found |= read
        waiting += [name for name in methods if name in read]


@pytest.fixture(scope="module")
def reads() -> Reads:
    return read_by_the_broker()


def is_obeyed(definition: ConfigDef, reads: Reads) -> bool:
    if definition.field is not None:
        return definition.field.name in reads.fields
    name = definition.name
    return name in reads.names or any(name in names and names[0] in reads.names for names in ALIASES)


def is_default_of_another(definition: ConfigDef) -> bool:
    """The broker configs that stand behind a topic or group config have their effect through it."""
    others = (*TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values())
    return any(definition.name in other.synonyms and other.applies for other in others)


@pytest.mark.parametrize("definition", HONOURED)
def test_a_config_that_is_said_to_have_an_effect_is_read(definition, reads):
    if definition.name in BOUNDS or is_default_of_another(definition):
        return
    assert is_obeyed(definition, reads), "nothing reads it: define it as accepted"


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_of_a_group_config_is_kept(name):
    group_config, step = BOUNDS[name]
    settings = Settings()
    assert BROKER_CONFIGS[name].applies
    with pytest.raises(InvalidConfig, match=f"{name}|too small"):  # by the definition, which may be as strict
        check_group(settings, "group", {group_config: str(settings[name] + step)})


def test_a_config_that_is_said_to_have_no_effect_is_not_read(reads):
    said = {name for name, definition in BROKER_CONFIGS.items() if not definition.applies}
    assert said & reads.names == set(), "define these as honoured"


@pytest.mark.parametrize(
    "holder",
    [GroupSettings, ConsumerGroupSettings, ShareGroupSettings, StreamsGroupSettings, TransactionSettings],
)
def test_a_coordinator_obeys_all_its_settings(holder, reads):
    assert {each.name for each in fields(holder)} <= reads.fields


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_every_field_is_filled_by_a_config(holder):
    filled = {
        definition.field.name
        for definition in (*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values())
        if definition.field is not None and definition.field.of is holder
    }
    assert filled == {each.name for each in fields(holder)}


def test_every_dataclass_that_a_config_goes_to_is_filled():
    named = {each.field.of.__name__ for table in TABLES.values() for each in table.values() if each.field}
    sources = [path.read_text() for path in (ROOT / "kbroker").glob("**/*.py")]
    assert named == set().union(*map(filled_in, sources)) == HOLDERS.keys()


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_defaults_stand_once(holder):
    assert Settings().typed(holder) == holder()


def test_coordinators_without_settings_have_those_of_a_broker_without_any():
    """They are loaded late, so that definitions cannot take defaults from them."""
    settings = Settings()
    assert group_settings(settings) == GroupSettings()
    assert consumer_group_settings(settings, {}) == ConsumerGroupSettings()
    assert share_group_settings(settings, {}) == ShareGroupSettings()
    assert share_settings(settings, {}) == ShareSettings()
    assert streams_group_settings(settings, {}) == StreamsGroupSettings()
    assert transaction_settings(settings) == TransactionSettings()


@pytest.mark.parametrize(
    ("source", "names", "fields_read"),
    [
        ('broker.settings["a.b"]', {"a.b"}, set()),
        ('self._settings.text("a.b")', {"a.b"}, {"text"}),
        ('values["a.b"]', {"a.b"}, set()),
        ("self._config.segment_ms", set(), {"segment_ms"}),
        ("config.segment_ms = 1", set(), set()),
        ('settings["a.b"] = 1', set(), set()),
        ('LogConfig(segment_ms=settings["a.b"])', {"a.b"}, set()),
        ('"a.b"', set(), set()),
        ("segment.preallocate", set(), set()),
    ],
)
def test_only_what_takes_a_value_from_settings_is_a_read(source, names, fields_read):
    reads = Reads()
    reads.add(source)
    assert (reads.names, reads.fields) == (names, fields_read)
