"""Every example runs, as its README says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_quickstart import install_kafkajs
from tests.support.inner_pytest import PYTEST

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(command: list[str], directory: Path = EXAMPLES, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, **environment},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def test_every_example_is_in_the_readme() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    for folder in EXAMPLES.iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"[{folder.name}]({folder.name}/" in readme


def test_pytest(tmp_path: Path) -> None:
    copy = shutil.copytree(EXAMPLES / "pytest", tmp_path / "example")
    assert "5 passed" in run([*PYTEST, str(copy)], tmp_path)


def test_unittest() -> None:
    assert "Ran 3 tests" in run([sys.executable, "-m", "unittest", "discover", "unittest"])


def test_faststream(tmp_path: Path) -> None:
    pytest.importorskip("faststream", reason="faststream is not installed")
    copy = shutil.copytree(EXAMPLES / "faststream", tmp_path / "example")
    assert "1 passed" in run([*PYTEST, str(copy)], tmp_path)


def test_local(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "local" / "shop.py"), str(tmp_path / "data")]
    assert "20 orders, 20 invoices, 390 due, lag 0" in run(command, tmp_path)
    assert "40 orders, 40 invoices, 780 due, lag 0" in run(command, tmp_path)


@pytest.mark.java
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven is not installed")
def test_java(tmp_path: Path) -> None:
    copy = shutil.copytree(EXAMPLES / "java", tmp_path / "example")
    command = ["mvn", "--batch-mode", "test", f"-Dkbroker={sys.executable} -m kbroker"]
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in run(command, copy)


def test_node(tmp_path: Path) -> None:
    install_kafkajs(tmp_path)
    shutil.copy(EXAMPLES / "node" / "orders.test.mjs", tmp_path)
    said = run(
        ["node", "--test"],
        tmp_path,
        KBROKER_COMMAND=f"{sys.executable} -m kbroker",
        KAFKAJS_NO_PARTITIONER_WARNING="1",
    )
    assert "pass 2" in said
