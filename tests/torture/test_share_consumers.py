"""Every record is delivered, and none that was accepted comes again, whoever dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import share_consumers


@pytest.mark.slow
def test_accepted_records_never_come_again_and_none_is_lost_over_kill_9(tmp_path: Path) -> None:
    outcome = share_consumers.run(5, directory=tmp_path, seed=1)
    assert outcome.ok, outcome
    assert outcome.accepted > 0
