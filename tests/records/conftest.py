from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.records.java_records import JavaRecords

# The first use of a codec loads its library, and the machine may be busy: time is no failure here.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def java_records() -> Iterator[JavaRecords]:
    java = JavaRecords()
    yield java
    java.close()
