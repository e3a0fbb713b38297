"""Streams by the dozen that wait, read slowly or never end cost nobody else anything but time."""

from __future__ import annotations

import pytest

from tests.torture import streams


@pytest.mark.slow
def test_streams_that_are_a_burden_keep_nobody_from_writing_and_reading() -> None:
    survived = streams.run(2, idle=50, slow=20, endless=10, records=100, loud_records=100)
    assert survived.ok, survived
    assert survived.records == 300
