"""`kbroker wire proxy` as a process, as a user starts it."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.server_process import eventually


class ProxyProcess:
    def __init__(self, upstream: str, *arguments: str) -> None:
        self._output = tempfile.NamedTemporaryFile(prefix="kbroker-wire-")  # noqa: SIM115
        command = [sys.executable, "-m", "kbroker", "wire", "proxy", "--upstream", upstream, *arguments]
        if "--listen" not in arguments:
            command += ["--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(command, stdout=self._output, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        match = re.search(r"listening on (\S+) for", line)
        assert match is not None, line + self._process.stderr.read()
        self.bootstrap = match[1]

    @property
    def output(self) -> str:
        return Path(self._output.name).read_text(encoding="utf-8")

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]

    def wait_for(self, text: str) -> None:
        eventually(lambda: text in self.output)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self._process.send_signal(number)
        try:
            return self._process.wait(30)
        finally:
            self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def close(self) -> None:
        self.kill()
        self._output.close()


@contextlib.contextmanager
def proxy(upstream: str, *arguments: str) -> Iterator[ProxyProcess]:
    process = ProxyProcess(upstream, *arguments)
    try:
        yield process
    finally:
        process.close()
