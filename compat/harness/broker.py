"""A kbroker process, as a user starts it: `python -m kbroker serve --port 0 --data DIR`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from . import server

LISTENING = re.compile(r"listening on (\S+):(\d+)")


class KBrokerProcess:
    """`with KBrokerProcess() as broker: … broker.bootstrap`. Restarts keep the port and the data."""

    name = "kbroker"
    node_id = 1

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        data: Path | None = None,
        arguments: tuple[str, ...] = (),
        checkout: Path | None = None,
    ) -> None:
        """``checkout``: a directory with the kbroker to run; else this one."""
        self.checkout = checkout
        self.settings = {"node.id": str(self.node_id), **(settings or {})}
        self.arguments = arguments
        self.host = "127.0.0.1"
        self.port = 0
        self._own_directory = Path(tempfile.mkdtemp(prefix="kbroker-compat-"))
        self.data = data or self._own_directory / "data"
        self.log = self._own_directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, seconds: float = 30) -> None:
        """Start and wait for the line that says where it listens."""
        command = [
            sys.executable,
            "-m",
            "kbroker",
            "serve",
            "--port",
            str(self.port),
            "--data",
            str(self.data),
        ]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                cwd=self.checkout,
            )
        try:
            server.wait_until(self._listens, self._process, self.log, seconds, pause=0.01)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> int:
        """SIGTERM; returns the exit code, which a graceful stop makes 0."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        return server.stop_process(process)

    def kill(self) -> None:
        """SIGKILL: what a crash looks like to the data directory."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def start_again(self) -> None:
        """After it was killed."""
        self.start()

    def restart(self) -> None:
        self.stop()
        self.start()

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.remove()

    def remove(self) -> None:
        """Remove the log, and the data unless the caller brought them."""
        shutil.rmtree(self._own_directory, ignore_errors=True)

    def _listens(self) -> bool:
        found = LISTENING.search(self.output())
        if found is None:
            return False
        self.host, self.port = found[1], int(found[2])
        return True


def _environment() -> dict[str, str]:
    """Without KBROKER_ variables, which would be settings of the broker, and without an HTTP port."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KBROKER_")}
    return inherited | {"KBROKER_HTTP_PORT": "off"}
