"""Every acknowledged record is read, or its loss is told, whatever one injury does to the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import corruption


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_in_silence(tmp_path: Path, seed: int) -> None:
    outcome = corruption.run(10, data=tmp_path, seed=seed)
    assert outcome.ok, "\n".join(outcome.violations)
    assert outcome.acknowledged
