from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.records.java_records import JavaRecords


@pytest.fixture(scope="session")
def java_records() -> Iterator[JavaRecords]:
    java = JavaRecords()
    yield java
    java.close()
