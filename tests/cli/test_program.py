"""How the program is named in what it shows; a fresh clone tries it: tests/docs/test_first_steps.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kbroker.cli.program import as_started, program


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed command that is not on the path, in the working directory's .venv."""
    script = tmp_path / ".venv" / "bin" / "kbroker"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "argv", [".venv/bin/kbroker"])
    return script


def test_a_script_is_named_by_its_path(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program() == ".venv/bin/kbroker"
    assert as_started("See 'kbroker topic list'") == "See '.venv/bin/kbroker topic list'"
    monkeypatch.setattr(sys, "argv", [str(script)])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert program() == str(script)


def test_a_script_on_the_path_is_named_without_it(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"/usr/bin:{script.parent}")
    assert program() == "kbroker"


def test_a_module_is_named_with_its_python(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/kbroker/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    assert program() == ".venv/bin/python -m kbroker"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "kbroker"


@pytest.mark.parametrize("called", ["/usr/lib/python3/pytest/__main__.py", "-c", "", "/usr/bin/gunicorn"])
def test_in_another_program_its_name_is_not_that_of_the_other(
    called: str, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert program() == "kbroker"


def test_a_path_that_a_shell_would_split_is_quoted(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "my tools" / "kbroker")])
    assert program() == "'my tools/kbroker'"
