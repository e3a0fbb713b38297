"""The last push of every client, one file each.

A file is named after the client instance id (as Kafka prints it) and holds OpenTelemetry's MetricsData as
protobuf. Only the most recent files are kept.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from kbroker.pending import Pending
from kbroker.storage.worker import Worker
from kbroker.telemetry.instance_ids import instance_id_text

logger = logging.getLogger("kbroker.telemetry")

MAX_FILES = 1_000


class TelemetryFiles:
    def __init__(self, directory: Path, worker: Worker) -> None:
        self._directory = directory
        self._worker = worker
        self._seen: set[str] = set()

    def receive(self, client_instance_id: bytes, metrics: bytes) -> None:
        """Take one push; it is written meanwhile."""
        name = instance_id_text(client_instance_id)
        is_new = name not in self._seen
        self._seen.add(name)
        self._worker.run(lambda: self._write(name, metrics, is_new)).then(_report)

    def _write(self, name: str, metrics: bytes, is_new: bool) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        unfinished = self._directory / f".{name}"
        unfinished.write_bytes(metrics)
        os.replace(unfinished, self._directory / f"{name}.otlp")
        if is_new:
            self._prune()

    def _prune(self) -> None:
        files = sorted(self._directory.glob("*.otlp"), key=lambda file: file.stat().st_mtime_ns)
        for file in files[: max(0, len(files) - MAX_FILES)]:
            file.unlink(missing_ok=True)
            self._seen.discard(file.stem)


def _report(written: Pending[None]) -> None:
    try:
        written.result()
    except OSError as error:
        logger.warning("client metrics could not be stored: %s", error)
