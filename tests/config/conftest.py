"""A broker as far as configs go: settings, topics, and configs altered at run time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kbroker.catalog.memory import MemoryCatalog
from kbroker.cluster.single_node import SingleNode
from kbroker.config.dynamic import DynamicConfigs
from kbroker.config.settings import Settings
from kbroker.pending import Pending


class Topics:
    def __init__(self, *names: str) -> None:
        self._topics = {name: SimpleNamespace(name=name, configs={}) for name in names}

    def get(self, name: str) -> SimpleNamespace | None:
        return self._topics.get(name)

    def names(self) -> list[str]:
        return sorted(self._topics)

    def recreate(self, name: str) -> None:
        self._topics[name] = SimpleNamespace(name=name, configs={})


class SlowCatalog(MemoryCatalog):
    """Has what it was given once the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Pending[None]] = []

    def save_configs(self, resource_type, resource_name, changes):
        super().save_configs(resource_type, resource_name, changes)
        self.writes.append(Pending())
        return self.writes[-1]


def catalog_with(*rows: tuple[int, str, str, str]) -> MemoryCatalog:
    catalog = MemoryCatalog()
    for resource_type, resource_name, name, value in rows:
        catalog.save_configs(resource_type, resource_name, {name: value}).result()
    return catalog


class FakeBroker:
    def __init__(self, settings: Settings | None = None, catalog: MemoryCatalog | None = None) -> None:
        self.settings = settings or Settings.load()
        self.cluster = SingleNode(self.settings, "cluster", 0)
        self.topics = Topics("orders", "payments")
        self.catalog = catalog or MemoryCatalog()
        self.dynamic_configs = DynamicConfigs(
            self.settings, self.catalog, self.catalog.snapshot().configs, self.topics
        )


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()
