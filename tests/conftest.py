"""The order of the unit tests: files with slow tests in them come last."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By file, as `--dist loadfile` hands out whole files; files that are as fast keep their order."""
    slow = {item.path for item in items if item.get_closest_marker("slow") and HERE in item.path.parents}
    items.sort(key=lambda item: item.path in slow)
