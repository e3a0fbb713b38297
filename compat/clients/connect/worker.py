"""A Kafka Connect worker in distributed mode: one JVM with its REST port on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from compat.harness import jars, java, server
from compat.harness.kafka import LOG4J2
from compat.harness.waiting import eventually

HEAP_MB = 256
START_SECONDS = 90
REBALANCE_SECONDS = 30


class RestError(RuntimeError):
    """The worker answered with an HTTP error."""


class ConnectWorker:
    """`with ConnectWorker(bootstrap, group, directory) as worker: worker.put("/connectors/…", {…})`.

    Its configs, offsets and statuses are in topics named after the group, so a worker that is started again
    knows its connectors.
    """

    def __init__(
        self, bootstrap: str, group: str, directory: Path, login: Mapping[str, str] | None = None
    ) -> None:
        """``login``: configs of all its clients."""
        self._login = login or {}
        self.group = group
        self.topics = {kind: f"{group}-{kind}" for kind in ("configs", "offsets", "statuses")}
        self._bootstrap = bootstrap
        self._directory = directory
        self._log = directory / "worker.log"
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        (self._port,) = server.free_ports(1)
        properties = self._directory / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        command = java.command(
            "org.apache.kafka.connect.cli.ConnectDistributed",
            [str(properties)],
            classpath=f"{jars.classpath('connect')}{os.pathsep}{jars.classpath('kafka')}",
            heap_mb=HEAP_MB,
            properties={"log4j2.configurationFile": LOG4J2.as_uri()},
        )
        with self._log.open("ab") as output:
            self._process = java.start(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            server.wait_until(self._is_ready, self._process, self._log, START_SECONDS, pause=0.1)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """SIGTERM: the worker commits its offsets and leaves its group."""
        if self._process is not None:
            process, self._process = self._process, None
            server.stop_process(process)

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def put(self, path: str, content: dict[str, Any] | None = None) -> Any:
        return self._ask("PUT", path, content)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def status(self, connector: str) -> list[dict[str, str]]:
        """State and worker of the connector itself, then of its tasks."""
        status = self.get(f"/connectors/{connector}/status")
        return [status["connector"], *status["tasks"]]

    def wait_for_state(self, connector: str, state: str) -> None:
        """Until the connector and its only task are in that state (a stopped one has no task)."""

        def states() -> list[str]:
            return [part["state"] for part in self.status(connector)]

        wanted = [state] if state == "STOPPED" else [state, state]
        eventually(states, lambda found: found == wanted, seconds=60)

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _settings(self) -> dict[str, str]:
        logins = {
            f"{client}{name}": value
            for client in ("", "admin.", "producer.", "consumer.")
            for name, value in self._login.items()
        }
        return logins | {
            "bootstrap.servers": self._bootstrap,
            "group.id": self.group,
            "config.storage.topic": self.topics["configs"],
            "offset.storage.topic": self.topics["offsets"],
            "status.storage.topic": self.topics["statuses"],
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": "2",
            "status.storage.partitions": "2",
            "heartbeat.interval.ms": "300",
            "offset.flush.interval.ms": "500",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "listeners": f"http://127.0.0.1:{self._port}",
            "plugin.discovery": "service_load",
            "scheduled.rebalance.max.delay.ms": "0",
        }

    def _is_ready(self) -> bool:
        try:
            self.get("/connectors")
        except (RestError, OSError):
            return False  # not listening, or not yet a member of its group
        return True

    def _ask(self, method: str, path: str, content: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if content is None else json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
        )
        deadline = time.monotonic() + REBALANCE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    answer = response.read()
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.CONFLICT or time.monotonic() > deadline:
                    raise RestError(f"{method} {path}: {error.code} {error.read().decode()}") from error
                time.sleep(0.05)  # the workers rebalance: it is to be asked again
            else:
                return json.loads(answer) if answer else None
