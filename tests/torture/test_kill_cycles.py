"""Nothing acknowledged is lost, nothing appears twice, whenever the broker dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import kill_cycles


@pytest.mark.slow
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_acknowledged_records_survive_kill_9(tmp_path: Path, idempotent: bool) -> None:
    outcome = kill_cycles.run(15, idempotent=idempotent, data=tmp_path / "data", seed=1)
    assert outcome.ok, outcome
    assert outcome.acknowledged > 0
