"""For the unit tests: files with slow tests in them come last, and Hypothesis looks at no clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By file, as `--dist loadfile` hands out whole files; files that are as fast keep their order."""
    slow = {item.path for item in items if item.get_closest_marker("slow") and HERE in item.path.parents}
    items.sort(key=lambda item: item.path in slow)
