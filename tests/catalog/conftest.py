"""Every catalog there is: tests that take one run on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbroker.catalog.interface import Catalog
from kbroker.catalog.memory import MemoryCatalog
from kbroker.catalog.sqlite.catalog import SqliteCatalog

Reopen = Callable[[], Catalog]


@pytest.fixture(params=["memory", "sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reopen]:
    """The catalog, as the next start finds it: that in memory is handed on, the other one is read anew."""
    if request.param == "memory":
        memory = MemoryCatalog()
        yield lambda: memory
        return
    opened: list[SqliteCatalog] = []

    def reopen() -> Catalog:
        while opened:
            opened.pop().close()
        opened.append(SqliteCatalog.open(tmp_path))
        return opened[0]

    yield reopen
    while opened:
        opened.pop().close()


@pytest.fixture
def catalog(reopen: Reopen) -> Catalog:
    return reopen()
