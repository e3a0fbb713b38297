from __future__ import annotations

import logging
import os
import tempfile
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


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where the machine has one: for tests that do thousands of small operations."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared, prefix="kbroker-test-") as path:
        yield Path(path)


@pytest.fixture
def quiet_log() -> Iterator[None]:
    """For tests that provoke thousands of warnings."""
    logger = logging.getLogger("kbroker.storage")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(level)
