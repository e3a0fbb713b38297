"""Files and directories that were given up, removed after a delay: whoever reads them finishes first."""

from __future__ import annotations

import heapq
import logging
import os

from kbroker.pending import Pending
from kbroker.storage.errors import shortage
from kbroker.storage.files import Files
from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.storage")

_RETRY_MS = 1000


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
        if not paths:
            return

        def removed(result: Pending[list[str]]) -> None:
            self.add(result.result(), now_ms + _RETRY_MS)

        self._worker.run(lambda: self._remove(paths)).then(removed)

    def _remove(self, paths: list[str]) -> list[str]:
        """Returns those for which it is to be tried again."""
        left = []
        for path in paths:
            try:
                if os.path.isdir(path):
                    self._files.remove_tree(path)
                else:
                    self._files.unlink_if_exists(path)
            except OSError as error:
                if shortage(error, path) is not None:
                    left.append(path)
                else:
                    logger.warning("%s could not be removed: %s", path, error)
        return left
