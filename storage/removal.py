"""Files and directories that were given up, removed after a delay: whoever reads them finishes first."""

from __future__ import annotations

import heapq
import logging
import os

from kbroker.storage.files import Files
from kbroker.storage.pending import Pending
from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.storage")


class Removal:
    def __init__(self, files: Files, worker: Worker) -> None:
        self._files = files
        self._worker = worker
        self._due: list[tuple[int, list[str]]] = []

    def add(self, paths: list[str], due_ms: int) -> None:
        """Remove these files, or directories of files, when it is time."""
        if paths:
            heapq.heappush(self._due, (due_ms, paths))

    def next_deadline(self, default: int) -> int:
        return min(self._due[0][0], default) if self._due else default

    def tick(self, now_ms: int) -> None:
        paths = []
        while self._due and self._due[0][0] <= now_ms:
            paths += heapq.heappop(self._due)[1]
        if paths:
            self._worker.run(lambda: self._remove(paths)).then(_report)

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                if os.path.isdir(path):
                    self._files.remove_tree(path)
                else:
                    self._files.unlink_if_exists(path)
            except OSError as error:
                logger.warning("%s could not be removed: %s", path, error)


def _report(result: Pending[None]) -> None:
    result.result()
