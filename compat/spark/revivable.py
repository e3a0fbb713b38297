"""A real Apache Kafka that can be killed and started again with its port and its data."""

from __future__ import annotations

import signal
import subprocess

from compat.harness import java, server
from compat.harness.kafka import RealKafka


class RevivableKafka(RealKafka):
    def kill(self) -> None:
        """SIGKILL: what a crash looks like to the data directory."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def revive(self) -> None:
        log = self.directory / "server.log"
        with log.open("ab") as output:
            self._process = java.start(
                self._command("kafka.Kafka", str(self.directory / "server.properties")),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        server.wait_until(
            lambda: server.answers(self.host, self.port), self._process, log, seconds=90, pause=0.1
        )
