"""A real Apache Kafka that can be killed and started again with its port and its data."""

from __future__ import annotations

import signal

from compat.harness.kafka import RealKafka


class RevivableKafka(RealKafka):
    def kill(self) -> None:
        """SIGKILL: what a crash looks like to the data directory."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
