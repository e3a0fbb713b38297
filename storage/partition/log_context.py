"""What the logs of a data directory share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbroker.storage.config import DirectoryConfig
from kbroker.storage.counts import DirectoryCounts
from kbroker.storage.durability.flusher import Flusher
from kbroker.storage.files import Files
from kbroker.storage.segments.descriptors import Descriptors
from kbroker.storage.worker import Worker


@dataclass(slots=True)
class LogContext:
    files: Files
    descriptors: Descriptors
    worker: Worker
    flusher: Flusher
    settings: DirectoryConfig
    fsync: bool
    counts: DirectoryCounts
    delete_later: Callable[[list[str], int], None]  # paths, after so many ms
    log_start_moved: Callable[[], None]  # to be checkpointed soon
