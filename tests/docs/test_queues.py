"""What docs/queues.md shows, run as it stands there, on a free port."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.config.definition import to_text
from kbroker.config.resource_configs import GROUP_CONFIGS
from tests.support.server_process import ServerProcess

TEXT = (Path(__file__).parents[2] / "docs/queues.md").read_text()
DEFAULTS = re.compile(r"^\| `([a-z.]+)` \| `?([^`|]+?)`? \|", re.MULTILINE).findall(TEXT)


def run(*command: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_nothing_to_a_job_that_is_done_and_one_that_is_rejected(tmp_path: Path) -> None:
    block = re.search(r"((?:^    (?:kbroker|echo)[^\n]+\n)+)", TEXT, re.MULTILINE)
    worker = re.search(r"^```python\n(.+?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert worker is not None
    serve, *commands = (line.strip() for line in block[1].splitlines())
    assert serve == "kbroker serve"
    with ServerProcess("--data", str(tmp_path / "data")) as broker:
        for command in commands:
            before, _, own = command.rpartition(" | ")
            words = shlex.split(own)
            assert words[0] == "kbroker"
            given = " ".join(shlex.split(before)[1:]) + "\n"
            run(sys.executable, "-m", *words, "-b", broker.bootstrap, given=given)
        said = run(sys.executable, "-c", worker[1].replace("127.0.0.1:9092", broker.bootstrap))
    assert sorted(said.splitlines()) == ["explode rejected", "resize accepted"]


@pytest.mark.parametrize(("config", "default"), DEFAULTS)
def test_defaults_are_those_in_the_table(config: str, default: str) -> None:
    assert to_text(GROUP_CONFIGS[config].default) == default
