"""The commands of docs/security.md, run as they stand there, on a free port and in an empty directory."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs/security.md").read_text()


def commands(heading: str) -> list[str]:
    """Those of the first block below a heading."""
    block = re.search(rf"^## {heading}\n.*?\n((?:    [^\n]+\n)+)", TEXT, re.MULTILINE | re.DOTALL)
    assert block is not None
    return [line.partition("#")[0].strip() for line in block[1].splitlines()]


def kbroker(command: str) -> list[str]:
    words = shlex.split(command)
    assert words[0] == "kbroker"
    return [sys.executable, "-m", *words]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_from_nothing_to_a_broker_that_speaks_tls(tmp_path: Path) -> None:
    port = str(free_port())
    _, init, serve, look = (each.replace("9093", port) for each in commands("TLS"))
    made = subprocess.run(
        [*kbroker(init), "--port", port], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "ssl.ca.location" in made.stdout
    broker = subprocess.Popen(kbroker(serve), cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert broker.stdout is not None
        assert f":{port}" in broker.stdout.readline()
        subprocess.run(kbroker(look), cwd=tmp_path, check=True, timeout=60)
    finally:
        broker.terminate()
        broker.wait(30)
        assert broker.stdout is not None
        broker.stdout.close()


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"`((?:ssl|kbroker)\.[a-z.]+)`", TEXT))))
def test_every_setting_that_is_named_does_something(setting: str) -> None:
    from kbroker.config.broker_configs import BROKER_CONFIGS

    clients = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
    assert setting in clients or setting == "ssl." or BROKER_CONFIGS[setting].applies
