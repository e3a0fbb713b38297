"""What docs/traces.md shows, run as it stands there, on free ports, and the names in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kbroker.config.broker_configs import BROKER_CONFIGS
from kbroker.storage.trace_events import EVENTS
from tests.support.server_process import ServerProcess

TEXT = (Path(__file__).parents[2] / "docs/traces.md").read_text()


def test_from_nothing_to_a_trace() -> None:
    block = re.search(r"((?:^    (?:kbroker|echo)[^\n]+\n)+)", TEXT, re.MULTILINE)
    assert block is not None
    serve, *commands = (line.strip() for line in block[1].splitlines())
    assert serve == "kbroker serve"
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        environment = {**os.environ, "KBROKER_BOOTSTRAP": server.bootstrap, "KBROKER_HTTP": server.url}

        def run(command: str) -> str:
            command = re.sub(r"\bkbroker (?=[a-z]+ )", f"{sys.executable} -m kbroker ", command)
            return subprocess.run(
                command, shell=True, env=environment, capture_output=True, text=True, timeout=60, check=True
            ).stdout

        *_, listed = map(run, commands)
        heading, trace = listed.splitlines()
        assert heading.split()[0] == "TRACE"
        shown = run(f"kbroker trace show {trace.split()[0]}")
    example = re.search(r"^    AFTER MS.*?\n\n", TEXT, re.MULTILINE | re.DOTALL)
    assert example is not None
    headings, *events = (re.split(r"\s{2,}", line.strip())[-7:] for line in example[0].strip().splitlines())
    said = [re.split(r"\s{2,}", line.strip())[-7:] for line in shown.splitlines()[1:]]
    assert said[0] == headings
    assert [line[:6] for line in said[1:]] == [line[:6] for line in events]


def test_every_event_and_no_other_is_explained() -> None:
    (table,) = re.findall(r"\| event \|.*?\n\n", TEXT, re.DOTALL)
    assert tuple(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == EVENTS


def test_every_setting_that_is_named_is_there() -> None:
    named = set(re.findall(r"`(kbroker\.(?:trace|otlp)\.[a-z.]+)[`=]", TEXT))
    assert named == {name for name in BROKER_CONFIGS if name.startswith(("kbroker.trace.", "kbroker.otlp."))}
