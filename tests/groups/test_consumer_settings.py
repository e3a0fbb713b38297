"""The settings of consumer groups are kept, and hold until the moment that a config changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from kbroker.catalog.memory import MemoryCatalog
from kbroker.config.dynamic import DynamicConfigs
from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.config.settings import Settings
from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.groups.opening import GroupValues, consumer_group_settings

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.dynamic import ConfiguredTopics

SESSION = "consumer.session.timeout.ms"


@pytest.fixture
def configs() -> DynamicConfigs:
    settings = Settings.load(None, flags={}, environ={}, host=None, port=0, advertise=None)
    return DynamicConfigs(settings, MemoryCatalog(), [], cast("ConfiguredTopics", {}))


@pytest.fixture
def settings(configs: DynamicConfigs) -> GroupValues[ConsumerGroupSettings]:
    broker = SimpleNamespace(
        dynamic_configs=configs,
        settings=configs._settings,
        group_configs=lambda group_id: configs.configs(ResourceType.GROUP, group_id),
    )
    return GroupValues(cast("Broker", broker), consumer_group_settings)


def change(configs: DynamicConfigs, type_: ResourceType, name: str, config: str, value: str | None) -> None:
    operation = Operation.DELETE if value is None else Operation.SET
    configs.alter(type_, name, [Change(config, operation, value)])


def test_what_is_asked_for_again_is_not_made_again(settings: GroupValues[ConsumerGroupSettings]) -> None:
    assert settings.of("one") is settings.of("another")
    assert len(settings._known) == 1


def test_a_groups_own_configs_hold_for_it_alone_and_at_once(
    configs: DynamicConfigs, settings: GroupValues[ConsumerGroupSettings]
) -> None:
    default = settings.of("one").session_timeout_ms
    for value in (50_000, 55_000):
        change(configs, ResourceType.GROUP, "one", SESSION, str(value))
        assert settings.of("one").session_timeout_ms == value
        assert settings.of("another").session_timeout_ms == default
    change(configs, ResourceType.GROUP, "one", SESSION, None)
    assert settings.of("one").session_timeout_ms == default
