"""Backups of a broker under load are what it had at one moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import backups


@pytest.mark.slow
def test_each_backup_under_load_is_consistent(tmp_path: Path) -> None:
    outcome = backups.run(4, directory=tmp_path)
    assert outcome.ok, outcome
    assert outcome.committed > 0
