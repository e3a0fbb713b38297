"""Transactions stay whole, whoever dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import transaction_history


@pytest.mark.slow
def test_transactions_are_whole_after_kill_9(tmp_path: Path) -> None:
    outcome = transaction_history.run(20, data=tmp_path / "data", journals=tmp_path / "journals", seed=1)
    assert outcome.ok, outcome
    assert outcome.committed > 0
    assert outcome.copied == 20 * transaction_history.INPUTS_PER_CYCLE


@pytest.mark.slow
def test_transactions_over_http_are_whole_after_kill_9(tmp_path: Path) -> None:
    outcome = transaction_history.run(
        10, data=tmp_path / "data", journals=tmp_path / "journals", seed=1, http=True
    )
    assert outcome.ok, outcome
    assert outcome.committed > 0
    assert outcome.copied == 10 * transaction_history.INPUTS_PER_CYCLE
