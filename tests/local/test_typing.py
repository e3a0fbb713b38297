"""Users' code is checked against our types, as strictly as mypy can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker import local

ROOT = Path(__file__).parents[2]
USE = Path(__file__).with_name("typed_use.py")


@pytest.mark.slow
def test_code_of_users_is_typed(tmp_path: Path) -> None:
    """It warns of every `ignore` that is not needed, too: what is wrong must be an error."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent"]
    done = subprocess.run(
        [*command, "--config-file", os.devnull, "--cache-dir", str(tmp_path), str(USE)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_all_that_is_exported_is_there() -> None:
    for name in local.__all__:
        assert getattr(local, name) is not None
    with pytest.raises(AttributeError):
        _ = local.nothing


def test_the_example_of_use_names_all_that_is_exported() -> None:
    text = USE.read_text()
    left_out = {name for name in local.__all__ if f"    {name},\n" not in text}
    assert left_out == {
        "ClosedError",
        "DescribedMember",
        "OpenError",
        "Origin",
        "PartitionLag",
        "WrongLoopError",
    }
