from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.timed_cluster import TimedCluster


@pytest.fixture
def cluster() -> Iterator[TimedCluster]:
    cluster = TimedCluster()
    yield cluster
    cluster.broker.close()
