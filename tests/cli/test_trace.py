"""kbroker trace: what happened to records, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.observability.traces import TRACE, traceparent
from tests.support.server_process import ServerProcess, eventually


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch, run: Run) -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0", "--set", "kbroker.trace.sampling=parent") as server:
        monkeypatch.setenv("KBROKER_BOOTSTRAP", server.bootstrap)
        monkeypatch.setenv("KBROKER_HTTP", server.url)
        yield server


def test_a_trace_is_listed_and_shown(run: Run, traced: ServerProcess) -> None:
    header = traceparent()[1].decode()
    assert "no trace" in run("trace", "list").stderr
    line = f'{{"key": "k1", "value": 1, "headers": {{"traceparent": "{header}"}}}}'
    assert run("produce", "orders", "--from-json", stdin=line.encode()).exit_code == 0
    assert run("consume", "orders").exit_code == 0
    eventually(lambda: "fetched" in run("trace", "list").stdout)
    listed = run("trace", "list", "--topic", "orders", "--key", "k1", "--since", "1h", "--json").json
    assert [(each["traceId"], each["spans"]) for each in listed] == [(TRACE, 3)]
    assert run("trace", "list", "--topic", "other", "--json").json == []
    shown = run("trace", "show", TRACE).stdout.splitlines()
    assert shown[0].startswith(TRACE)
    words = [line.split() for line in shown[2:]]
    assert [each[2:7] for each in words] == [
        ["received", "ok", "orders", "0", "0"],
        ["stored", "ok", "orders", "0", "0"],
        ["fetched", "ok", "orders", "0", "0"],
    ]
    assert len(run("trace", "show", TRACE, "--json").json["spans"]) == 3


def test_what_is_wrong_is_said(run: Run, traced: ServerProcess) -> None:
    gone = run("trace", "show", "1" * 32)
    assert (gone.exit_code, "There is no trace" in gone.stderr) == (1, True)
    assert "32 hexadecimal digits" in run("trace", "show", "x").stderr
    assert "limit must be" in run("trace", "list", "-n", "0").stderr
    nobody = run("trace", "list", "--url", "http://127.0.0.1:1")
    assert (nobody.exit_code, "--url" in nobody.stderr) == (3, True)
    assert run("trace", "list", "--url", "nonsense").exit_code == 2
