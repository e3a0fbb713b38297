"""Traces, given what they need of the broker: a file for the ring, settings, time."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker import __version__
from kbroker.observability.traces.recorder import Recorder
from kbroker.observability.traces.ring import Ring

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.traces.recorder import Exporter

logger = logging.getLogger("kbroker.traces")

_RING, _LINES = "traces.ring", "traces.jsonl"


def open_traces(broker: Broker) -> Recorder:
    settings = broker.settings
    path = _path(broker)
    size_bytes: int = settings["kbroker.trace.buffer.bytes"]
    open_ring = partial(_open_ring, path, size_bytes)
    recorder = Recorder(open_ring, broker.long_requests, broker.worker, broker.clock)
    recorder.exporters = [_exporter(broker, name) for name in settings["kbroker.trace.exporters"]]
    return recorder


def has_ring(broker: Broker) -> bool:
    """Whether an earlier run has left spans."""
    path = _path(broker)
    return path is not None and os.path.exists(path)


def _path(broker: Broker) -> str | None:
    """None: the broker has no data directory."""
    directory = broker.logs.path
    if broker.settings["kbroker.in.memory"] or not os.path.isdir(directory):
        return None
    return os.path.join(directory, _RING)


def _beside_ring(broker: Broker) -> str:
    """In the working directory, where there is no data directory."""
    ring = _path(broker)
    return _LINES if ring is None else os.path.join(os.path.dirname(ring), _LINES)


def _open_ring(path: str | None, size_bytes: int) -> Ring:
    try:
        return Ring.open(path, size_bytes)
    except (OSError, ValueError) as error:
        logger.warning("spans are kept in memory, there is no file for them: %s", error)
        return Ring.in_memory(size_bytes)


def _exporter(broker: Broker, name: str) -> Exporter:
    from kbroker.observability.traces import exporters

    settings = broker.settings
    if name == "stdout":
        return exporters.StdoutExporter(broker.worker, broker.scheduler)
    if name == "file":
        from kbroker.security.audit_file import AuditFile

        file = AuditFile(
            Path(settings["kbroker.trace.file"] or _beside_ring(broker)),
            settings["kbroker.trace.file.max.bytes"],
            settings["kbroker.trace.file.backups"],
        )
        return exporters.FileExporter(file, broker.worker, broker.scheduler)
    resource: dict[str, str | int] = {
        "service.name": "kbroker",
        "service.version": __version__,
        "service.instance.id": f"{broker.cluster.cluster_id}-{settings['node.id']}",
    }
    return exporters.OtlpExporter(broker.otlp, resource, broker.worker, broker.scheduler)
