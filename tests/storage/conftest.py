from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.storage.interface import Log

from .support import Storage


@pytest.fixture(params=["files", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """Both kinds of directory: what holds for one holds for the other."""
    opened = Storage(tmp_path / "data" if request.param == "files" else None)
    yield opened
    opened.directory.close()


@pytest.fixture
def log(storage: Storage) -> Log:
    return storage.log()


@pytest.fixture
def file_storage(tmp_path: Path) -> Iterator[Storage]:
    opened = Storage(tmp_path / "data")
    yield opened
    opened.directory.close()
