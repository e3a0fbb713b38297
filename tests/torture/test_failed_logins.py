"""Who guesses passwords keeps nobody else waiting, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import failed_logins


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), failed_logins.WITHOUT_WAITS], ids=["waits", "no waits"])
def test_a_thousand_failed_logins_leave_nothing_behind(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    survived = failed_logins.run(20, directory=tmp_path, seed=1, arguments=arguments)
    assert survived.ok, survived
    assert survived.wrong == 1000
