"""A real Apache Kafka: one node in KRaft combined mode, in a temporary directory, on free ports."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from . import jars, java, server

CLUSTER_ID = "a2Jyb2tlci1jb21wYXQtMQ"
LOG4J2 = Path(__file__).with_name("log4j2.xml")


class RealKafka:
    """Apache Kafka 4.3.1. `with RealKafka() as kafka: … kafka.bootstrap`."""

    name = "apache-kafka"
    host = "127.0.0.1"
    node_id = 1

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        heap_mb: int = 512,
        plugin: Path | None = None,
    ) -> None:
        """``plugin``: the source of a Java class that the settings name."""
        self.settings = dict(settings or {})
        self.plugin = plugin
        self.heap_mb = heap_mb
        self.port = 0
        self.directory = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def data(self) -> Path:
        """The log directory: one folder per partition."""
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, attempts: int = 3) -> None:
        """Format the storage and start; another pair of ports when somebody took ours meanwhile."""
        for attempt in range(attempts):
            self.directory = Path(tempfile.mkdtemp(prefix="kbroker-compat-kafka-"))
            try:
                self._start_once()
            except BaseException as error:
                self.stop()
                if (
                    attempt == attempts - 1
                    or not isinstance(error, server.ServerFailed)
                    or "bind" not in str(error)
                ):
                    raise
            else:
                return

    def start_again(self, *, seconds: float = 90, pause: float = 0.1) -> None:
        """Start the process with the port and the data that there are; wait until it answers."""
        log = self.directory / "server.log"
        command = self._command("kafka.Kafka", str(self.directory / "server.properties"))
        with log.open("ab") as output:
            self._process = java.start(command, stdout=output, stderr=subprocess.STDOUT)
        server.wait_until(
            lambda: server.answers(self.host, self.port), self._process, log, seconds=seconds, pause=pause
        )

    def kill(self) -> None:
        """SIGKILL: what a crash looks like to the data directory."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            server.stop_process(self._process)
            self._process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_once(self) -> None:
        self.port, controller_port = server.free_ports(2)
        properties = self.directory / "server.properties"
        properties.write_text(self._server_properties(controller_port))
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
        self.start_again()

    def _server_properties(self, controller_port: int) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self.node_id}@{self.host}:{controller_port}",
            "listeners": f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.host}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def _command(self, main_class: str, *arguments: str) -> list[str]:
        classpath = jars.classpath("kafka")
        if self.plugin is not None:
            classes = java.compile_sources([self.plugin], self.plugin.stem, classpath)
            classpath = f"{classes}:{classpath}"
        return java.command(
            main_class,
            arguments,
            classpath=classpath,
            heap_mb=self.heap_mb,
            properties={"log4j2.configurationFile": LOG4J2.as_uri()},
        )

    def _run(self, main_class: str, *arguments: str) -> None:
        done = subprocess.run(
            self._command(main_class, *arguments), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise server.ServerFailed(
                f"{main_class} exited with {done.returncode}\n{done.stdout}{done.stderr}"
            )
