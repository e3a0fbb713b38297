from __future__ import annotations

import pytest

from .support import Simulation


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


@pytest.fixture
def version_1() -> Simulation:
    """A cluster whose feature transaction.version is below 2."""
    return Simulation(version=0)
