"""A headless Chromium for tests: a page, and what its scripts make of it (Chrome's DevTools protocol)."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from itertools import count
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

from tests.support.server_process import eventually

CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--remote-debugging-port=0",
)


class Browser:
    def __init__(self, directory: Path) -> None:
        """``directory``: empty, for all that it keeps."""
        self._directory = directory
        self._numbers = count(1)
        self._log = (directory.parent / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={directory}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._page: ClientConnection | None = None

    def open(self, url: str) -> None:
        port_file = self._directory / "DevToolsActivePort"
        eventually(lambda: port_file.exists() and port_file.read_text().count("\n") > 0, 60)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            (target,) = [each for each in json.load(answer) if each["type"] == "page"]
        self._page = connect(target["webSocketDebuggerUrl"], max_size=None).__enter__()
        self._ask("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def eventually(self, script: str, value: Any) -> None:
        eventually(lambda: self.evaluate(script) == value, 60)

    def _ask(self, method: str, **parameters: Any) -> Any:
        assert self._page is not None
        number = next(self._numbers)
        self._page.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._page.recv(timeout=60))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.__exit__(None, None, None)
        self._process.kill()
        self._process.wait(30)
        self._log.close()
