import pytest

from tests.handlers.conftest import cluster, logs

__all__ = ["cluster", "logs"]


@pytest.fixture
def settings() -> dict[str, str]:
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}
