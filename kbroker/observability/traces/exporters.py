"""Where spans go besides the ring: JSON lines in a file or on standard output, an OTLP receiver.

Each gathers spans for a moment, and hands them on together. What waits is bounded, the rest is counted.
"""

from __future__ import annotations

import json
import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kbroker.observability.otlp import TRACES, OtlpSender
from kbroker.observability.traces.otlp_spans import encoded
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.observability.traces.spans import Span
    from kbroker.scheduler import Scheduler
    from kbroker.security.audit_file import AuditFile
    from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.traces")

_TOGETHER = 512
_MOST_WAITING = 8192
_PAUSE_MS = 500


class GatheringExporter(ABC):
    def __init__(self, worker: Worker, scheduler: Scheduler) -> None:
        self._worker = worker
        self._scheduler = scheduler
        self._waiting: list[Span] = []
        self._planned = False
        self._busy = False
        self._closed: Pending[None] | None = None
        self.exported = 0
        self.dropped = 0

    def add(self, span: Span) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(span)
        if self._planned or self._busy:
            return
        self._planned = True
        self._scheduler.after(_PAUSE_MS, self._due)

    def close(self) -> Pending[None]:
        self._closed = Pending()
        if not self._busy:
            self._hand_on()
        return self._closed

    def _due(self) -> None:
        self._planned = False
        if not self._busy and self._waiting:
            self._hand_on()

    def _hand_on(self) -> None:
        spans = self._waiting[:_TOGETHER]
        if not spans:
            self._busy = False
            if self._closed is not None:
                self._closed.resolve(None)
            return
        del self._waiting[:_TOGETHER]
        self._busy = True

        def done(handed: Pending[int]) -> None:
            try:
                exported = handed.result()
            except Exception as error:
                exported = 0
                logger.warning("spans are not exported: %s", error)
            self.exported += exported
            self.dropped += len(spans) - exported
            self._hand_on()

        self._worker.run(partial(self._take, spans)).then(done)

    @abstractmethod
    def _take(self, spans: Sequence[Span]) -> int:
        """How many were taken. In a worker's thread."""


class FileExporter(GatheringExporter):
    def __init__(self, file: AuditFile, worker: Worker, scheduler: Scheduler) -> None:
        super().__init__(worker, scheduler)
        self._file = file

    def _take(self, spans: Sequence[Span]) -> int:
        written = self._file.write(_lines(spans))
        if written.error is not None:
            logger.warning("spans cannot be written: %s", written.error)
        return written.lines


class StdoutExporter(GatheringExporter):
    def _take(self, spans: Sequence[Span]) -> int:
        sys.stdout.write(b"".join(_lines(spans)).decode())
        sys.stdout.flush()
        return len(spans)


class OtlpExporter(GatheringExporter):
    def __init__(
        self, sender: OtlpSender, resource: Mapping[str, str | int], worker: Worker, scheduler: Scheduler
    ) -> None:
        super().__init__(worker, scheduler)
        self._sender = sender
        self._resource = resource

    def _take(self, spans: Sequence[Span]) -> int:
        self._sender.send(TRACES, len(spans), partial(encoded, spans, self._resource))
        return len(spans)


def _lines(spans: Sequence[Span]) -> list[bytes]:
    return [json.dumps(each.document(), separators=(",", ":")).encode() + b"\n" for each in spans]
