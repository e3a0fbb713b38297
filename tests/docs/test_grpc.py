"""What docs/grpc.md shows runs as it stands there, on a free port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.config.broker_configs import BROKER_CONFIGS
from tests.docs.console import Shell, as_shown, consoles
from tests.support.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/grpc.md").read_text()
ADDRESS = "127.0.0.1:9094"
SAID = """\
… 0
0 100 False
1 100 False
2 100 False
301 records
lag 0
NOT_FOUND There is no such topic.
UNKNOWN_TOPIC_OR_PARTITION true
"""


def test_all_of_it_runs_one_after_the_other(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with Shell(tmp_path, **environment) as shell:
        for command, output in consoles(TEXT):
            said = shell.run(command)
            assert as_shown(said, output), f"$ {command}\n{said}\nshown: {output}"
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server:
        (tmp_path / "program.py").write_text(program.replace(ADDRESS, server.grpc))
        done = subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert as_shown(done.stdout, SAID), done.stdout


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"`(kbroker\.(?:grpc|http)\.[a-z.]+)`", TEXT))))
def test_every_setting_that_is_named_does_something(setting: str) -> None:
    assert BROKER_CONFIGS[setting].applies


def test_all_of_its_own_settings_are_named() -> None:
    own = {name for name in BROKER_CONFIGS if name.startswith("kbroker.grpc.")}
    assert {name for name in own if name not in TEXT} == set()
