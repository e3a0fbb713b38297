"""The commands of docs/security.md, run as they stand there, on a free port and in an empty directory."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs/security.md").read_text()


def commands(heading: str) -> list[str]:
    """Those of the first block below a heading."""
    block = re.search(rf"^##? {heading}\n.*?\n((?:    [^\n]+\n)+)", TEXT, re.MULTILINE | re.DOTALL)
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


@contextmanager
def running(serve: str, directory: Path, port: str) -> Iterator[None]:
    broker = subprocess.Popen(kbroker(serve), cwd=directory, stdout=subprocess.PIPE, text=True)
    try:
        assert broker.stdout is not None
        assert f":{port}" in broker.stdout.readline()
        yield
    finally:
        broker.terminate()
        broker.wait(30)
        assert broker.stdout is not None
        broker.stdout.close()


def test_from_nothing_to_a_broker_that_speaks_tls(tmp_path: Path) -> None:
    port = str(free_port())
    _, init, serve, look = (each.replace("9093", port) for each in commands("TLS"))
    made = subprocess.run(
        [*kbroker(init), "--port", port], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "ssl.ca.location" in made.stdout
    with running(serve, tmp_path, port):
        subprocess.run(kbroker(look), cwd=tmp_path, check=True, timeout=60)


def test_from_nothing_to_tls_passwords_and_acls_in_five_commands(tmp_path: Path) -> None:
    port = str(free_port())
    five = [each.replace("9093", port) for each in commands("Security")]
    assert len(five) == 5
    init, serve, *others = five
    subprocess.run([*kbroker(init), "--port", port], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    with running(serve, tmp_path, port):
        for command in others:
            echoed, _, after = command.rpartition(" | ")
            words = shlex.split(echoed)[1:]
            done = subprocess.run(
                kbroker(after), cwd=tmp_path, input=" ".join(words), text=True, timeout=60, check=True
            )
            assert done.returncode == 0
        settings = (tmp_path / "secure/admin.properties").read_text()
        password = re.search(r'password="(.+)"', settings)
        assert password is not None
        for name, secret, may in (("alice", "alices-password", True), ("alice", "wrong", False)):
            own = settings.replace('"admin"', f'"{name}"').replace(password[1], secret)
            (tmp_path / "own.properties").write_text(own)
            client = ["-b", f"localhost:{port}", "--command-config", "own.properties"]
            for command in (["produce", "orders"], ["consume", "orders", "-n", "1", "-g", "readers"]):
                done = subprocess.run(
                    [sys.executable, "-m", "kbroker", *command, *client],
                    cwd=tmp_path,
                    input="hello\n",
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                assert (done.returncode == 0) == may, done.stderr


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"`((?:ssl|kbroker)\.[a-z.]+)`", TEXT))))
def test_every_setting_that_is_named_does_something(setting: str) -> None:
    from kbroker.config.broker_configs import BROKER_CONFIGS

    others = ("ssl.", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "kbroker.audit")
    assert setting in others or BROKER_CONFIGS[setting].applies
