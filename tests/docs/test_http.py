"""What docs/http.md shows, typed as it stands there, on a free port."""

from __future__ import annotations

import os
import re
import sys
from itertools import groupby
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.docs.console import Shell, as_shown, consoles
from tests.support.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/http.md").read_text()
ADDRESS = "127.0.0.1:8080"


def test_every_command_prints_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / ".curlrc").write_text("silent\nshow-error\nmax-time = 60\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "CURL_HOME": str(tmp_path), "PATH": path}
    shown = consoles(TEXT)
    assert len(shown) > 15
    with (
        ServerProcess("--data", str(tmp_path / "data"), "--http-port", "0") as server,
        Shell(tmp_path, **environment) as shell,
    ):
        address = server.url.removeprefix("http://")
        for command, output in shown:
            said = shell.run(command.replace(ADDRESS, address)).replace(address, ADDRESS)
            assert as_shown(said, output), f"$ {command}\n{said}\nshown: {output}"


def test_what_is_said_over_a_websocket_is_answered_as_shown() -> None:
    talks = re.findall(r"^```websocket\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(talks) == 2
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        for talk in talks:
            url, *lines = talk.splitlines()
            with connect(url.replace(ADDRESS, server.url.removeprefix("http://"))) as socket:
                for side, group in groupby(lines, key=lambda line: line[0]):
                    shown = [line[2:] for line in group]
                    if side == ">":
                        (said,) = shown
                        socket.send(said)
                        continue
                    for _ in shown[:]:  # records and answers come in any order
                        said = str(socket.recv(timeout=20))
                        fitting = [each for each in shown if as_shown(said, each)]
                        assert fitting, f"{said}\nshown: {shown}"
                        shown.remove(fitting[0])


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"`(kbroker\.http\.[a-z.]+)`", TEXT))))
def test_every_setting_that_is_named_does_something(setting: str) -> None:
    from kbroker.config.broker_configs import BROKER_CONFIGS

    assert BROKER_CONFIGS[setting].applies


def test_every_link_points_at_something() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
