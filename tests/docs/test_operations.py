"""What docs/operations.md shows, typed as it stands there; and that what it names is there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from kbroker.cli import make_parser
from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.http.table import endpoints
from kbroker.observability.log_lines import FIELDS
from tests.docs.console import Shell, as_shown, consoles
from tests.support.http_client import HttpClient
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess

TEXT = (Path(__file__).parents[2] / "docs/operations.md").read_text()


def test_every_command_prints_what_is_shown(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with ServerProcess("--data", str(tmp_path / "data"), "--http-port", "0") as server:
        with server.client() as client:
            create(client, "topic", 1)
            produce(client, "topic", 0, b"value")
        with Shell(tmp_path, **{**os.environ, "PATH": path, "KBROKER_HTTP_URL": server.url}) as shell:
            shown = consoles(TEXT)
            assert len(shown) == 4
            for command, output in shown:
                said = shell.run(command)
                assert as_shown(said.splitlines()[-1], output), f"$ {command}\n{said}\nshown: {output}"


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"`((?:kbroker|log|queued)\.[a-z.]+)`", TEXT))))
def test_every_setting_that_is_named_is_one(setting: str) -> None:
    assert setting in BROKER_CONFIGS or setting in TOPIC_CONFIGS


def test_every_path_that_is_named_is_served() -> None:
    named = {*re.findall(r"`GET (/\S+)`", TEXT)}
    assert named
    assert named <= {path for path, endpoint in endpoints() if endpoint.method == "GET"}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`kbroker ([a-z]+(?: [a-z]+)?)", TEXT))))
def test_every_command_that_is_named_is_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([*command.split(), "--help"])
    assert ended.value.code == 0
    capsys.readouterr()


def test_the_checks_and_fields_are_those_that_there_are() -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", TEXT, re.MULTILINE)
    tables = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(FIELDS) <= tables
    with ServerProcess("--in-memory", "--http-port", "0") as server, HttpClient(server.url) as http:
        assert set(http.get("/readyz").json["checks"]) <= tables
