"""Every command and snippet of the README does what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.testing import KafkaBroker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


SERVE_COMMANDS = [
    line.partition("#")[0].strip()
    for block in blocks("sh")
    for line in block.splitlines()
    if "kbroker serve" in line
]


def first_line(command: list[str], directory: Path, **environment: str) -> str:
    """Start it, and stop it once it has said where it listens."""
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        return process.stdout.readline()
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize("command", SERVE_COMMANDS)
def test_serve_commands_start_a_broker(command: str, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=1\nlog.dirs=data\n")
    arguments = shlex.split(command)[1:]
    if "--port" not in arguments:
        arguments += ["--port", "0"]
    assert "listening on 127.0.0.1:" in first_line([sys.executable, "-m", "kbroker", *arguments], tmp_path)


def test_make_run_starts_a_broker(tmp_path: Path) -> None:
    said = first_line(
        ["make", "--silent", "run", f"DATA={tmp_path / 'data'}"],
        ROOT,
        KBROKER_LISTENERS="PLAINTEXT://127.0.0.1:0",
    )
    assert "listening on 127.0.0.1:" in said
    assert (tmp_path / "data").is_dir()


def test_python_snippets_run() -> None:
    (snippet,) = blocks("python")
    with KafkaBroker() as broker:
        script = snippet.replace("127.0.0.1:9092", broker.bootstrap_servers)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.stdout == "b'hello'\n", done.stderr


def test_every_make_target_of_the_readme_exists() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in re.findall(r"\bmake ([a-z-]+)", README):
        assert f"make {target}" in listed or target == "help"


def test_every_link_points_at_something() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
