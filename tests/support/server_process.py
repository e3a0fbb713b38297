"""A kbroker process for tests: started as a user starts it, stopped or killed by its id."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Self

from tests.support.raw_client import RawClient


class ServerProcess:
    def __init__(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        module: str = "kbroker",
        descriptors: int | None = None,
    ) -> None:
        """`module`: what to run, if it is kbroker with something of the test's own.

        `descriptors`: how many it may have open at most.
        """
        self.arguments = arguments
        self.module = module
        self.descriptors = descriptors
        self.env = {**os.environ, **(env or {})}
        self.address = ("", 0)
        self.url = ""
        """Of the HTTP API, where there is one."""
        self.grpc = ""
        """The address of the gRPC API, where there is one."""
        self.others: dict[str, str] = {}
        """Further addresses by HTTP, such as that of the metrics."""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", self.module, "serve", *self.arguments]
        if "--port" not in self.arguments:
            command += ["--port", str(self.address[1])]
        if self.descriptors is not None:
            command = ["sh", "-c", f'ulimit -n {self.descriptors} && exec "$@"', "sh", *command]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=self.env
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r"listening on \[?([^\s\]]+)\]?:(\d+)", line)
        if match is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)  # it may still be telling why
            self.kill()
            raise AssertionError(f"kbroker did not start: {line} {self.log()}")
        self.address = (match[1], int(match[2]))
        url = re.search(r"HTTP on (https?://[^\s,]+)", line)
        self.url = "" if url is None else url[1]
        self.others = dict(re.findall(r", ([a-z]+) on (https?://[^\s,]+)", line))
        grpc = re.search(r"gRPC on ([^\s,]+)", line)
        self.grpc = "" if grpc is None else grpc[1]

    @property
    def bootstrap(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def client(self, timeout: float = 20) -> RawClient:
        return RawClient(self.address, timeout)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def wait(self) -> int:
        """The exit code of a process that is stopping by itself."""
        assert self._process is not None
        process, self._process = self._process, None
        assert process.stdout is not None
        process.stdout.close()
        return process.wait(30)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            return process.wait(30)
        finally:
            process.kill()
            assert process.stdout is not None
            process.stdout.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._log.close()

    def memory_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"RssAnon:\s+(\d+) kB", status)
        assert match is not None
        return int(match[1]) * 1024


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for a condition, never for a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)
