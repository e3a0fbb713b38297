"""KafkaBroker: a broker for one test or one test session.

By default it is a process of its own, so that blocking test code and native clients never hold it up; it
holds the read end of a pipe whose other end only this process has, and ends when this process does, however
that happens. With ``in_process=True`` it runs in the event loop of the test (``async with`` only).
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from kbroker.testing.control_client import ControlClient, ControlError

if TYPE_CHECKING:
    from kbroker.server import Server

_LISTENING = re.compile(r"listening on (\S+):(\d+).* control port (\d+)")
_DEFAULTS = {"kbroker.http.port": "off", "log.retention.check.interval.ms": "1000"}


class BrokerFailed(Exception):
    """The broker did not start; the message holds what it said."""


class Record(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Request(NamedTuple):
    api: str
    version: int
    client_id: str | None


class KafkaBroker:
    def __init__(
        self,
        topics: Mapping[str, int] | Sequence[str] = (),
        configs: Mapping[str, str] | None = None,
        data: str | os.PathLike[str] | None = None,
        port: int = 0,
        in_process: bool = False,
    ) -> None:
        """``topics``: names, or names with their number of partitions. ``data``: a directory; else memory."""
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        self._configs = {**_DEFAULTS, **(configs or {})}
        self._data = None if data is None else Path(data)
        self._in_process = in_process
        self._process: subprocess.Popen[str] | None = None
        self._server: Server | None = None
        self._control: ControlClient | None = None
        self._log: IO[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = port
        self.control_port = 0

    # where it is

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process id (this one's, in process)."""
        return os.getpid() if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._server is not None or (self._process is not None and self._process.poll() is None)

    # its life

    def start(self) -> None:
        if self._in_process:
            raise RuntimeError("a broker in this process needs its event loop: use 'async with'")
        command = [
            *(sys.executable, "-m", "kbroker", "serve", "--with-parent", "--control-port", "0"),
            *("--host", self.host, "--port", str(self.port)),
            *(("--in-memory",) if self._data is None else ("--data", str(self._data))),
        ]
        for name, value in self._configs.items():
            command += ["--set", f"{name}={value}"]
        self._log = self._log or tempfile.TemporaryFile(prefix="kbroker-")  # noqa: SIM115  # closed by stop
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = _LISTENING.search(line)
        if match is None:
            said = line + self.log()
            self.kill()
            self._close_log()
            raise BrokerFailed(said.strip() or "it ended without a word")
        self.host, self.port, self.control_port = match[1], int(match[2]), int(match[3])
        self._control = ControlClient(self.control_port)
        for topic, partitions in self._topics.items():
            # A data directory has kept those of the last start.
            self._do("create_topic", name=topic, partitions=partitions, if_not_exists=True)

    def stop(self) -> None:
        """Stop as SIGTERM does: gracefully."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill -9. With a data directory, ``start`` then shows what a crash leaves."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start again at the same address. Without a data directory it starts empty."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._close_log()

    async def __aenter__(self) -> Self:
        if not self._in_process:
            return self.__enter__()
        from kbroker.config.settings import Settings
        from kbroker.server import Server

        flags = dict(self._configs)
        flags |= {"kbroker.in.memory": "true"} if self._data is None else {"log.dirs": str(self._data)}
        self._server = await Server.open(Settings.load(flags=flags, host=self.host, port=self.port))
        await self._server.start()
        _, self.host, self.port = self._server.addresses[0]
        self.control_port = await self._server.open_control_port(0)
        for topic, partitions in self._topics.items():
            await self.control("create_topic", name=topic, partitions=partitions, if_not_exists=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is None:
            self.__exit__()
        else:
            await self._server.stop()
            self._server = None

    # what goes wrong

    def fail(
        self,
        api: str | None = None,
        error: str = "UNKNOWN_SERVER_ERROR",
        times: int | None = 1,
        client_id: str | None = None,
    ) -> None:
        """Answer the next requests of an API with an error; ``times=None``: until ``heal``."""
        self._do("fail", error=error, api=api, times=times, client_id=client_id)

    def delay(
        self, api: str | None = None, ms: int = 0, times: int | None = None, client_id: str | None = None
    ) -> None:
        """Let requests of an API wait; without ``times`` until ``heal``."""
        self._do("delay", ms=ms, api=api, times=times, client_id=client_id)

    def heal(self) -> None:
        """No more injected errors and delays; requests that wait because of one go on at once."""
        self._do("clear")

    def drop_connections(self) -> int:
        """Reset every client's connection; returns how many there were."""
        return int(self._do("drop_connections"))

    def pause(self) -> None:
        """Execute nothing, as a broker that hangs, until ``resume``."""
        self._do("pause")

    def resume(self) -> None:
        self._do("resume")

    def recover(self) -> None:
        """Undo what a test did: start it again if it is down, heal, resume. Time and data stay.

        The plugin calls it after each test; a broker in this process is left to its test.
        """
        if self._in_process:
            return
        if self.is_running:
            with contextlib.suppress(OSError, ControlError):  # it is about to be gone
                self.heal()
                self.resume()
                return
        self.restart()

    def advance_time(self, ms: int) -> None:
        """Let the broker's clock jump ahead: sessions, rebalances, transactions, retention."""
        self._do("advance_time", ms=ms)

    # what happened

    @property
    def requests(self) -> list[Request]:
        """What clients have sent, oldest first (the last 10,000)."""
        return [Request(**seen) for seen in self._do("requests")]

    def forget_requests(self) -> None:
        self._do("forget_requests")

    def records(self, topic: str) -> list[Record]:
        """Every record of a topic, partition by partition."""
        return [
            Record(
                record["partition"],
                record["offset"],
                record["timestamp"],
                _bytes(record["key"]),
                _bytes(record["value"]),
                tuple((name, _bytes(value)) for name, value in record["headers"]),
            )
            for record in self._do("records", topic=topic)
        ]

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        self._do("create_topic", name=name, partitions=partitions, configs=dict(configs or {}))

    def log(self) -> str:
        """What the broker wrote to its log so far."""
        if self._log is None:
            return ""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    # internals

    def _do(self, action: str, **arguments: Any) -> Any:
        if self._server is not None:
            raise RuntimeError(
                "a broker in this process is controlled with: await broker.control(action, **arguments)"
            )
        if self._control is None:
            raise RuntimeError("the broker is not running")
        return self._control.do(action, **arguments)

    async def control(self, action: str, **arguments: Any) -> Any:
        """The same actions, for a broker in this process: fail, delay, clear, requests, records, …"""
        if self._server is None:
            return self._do(action, **arguments)
        return await self._server.control(action, **arguments)

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _end(self, number: int) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is None:
            return
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
