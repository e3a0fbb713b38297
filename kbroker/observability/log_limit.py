"""Bounds how often the log says the same of clients: what one does a thousand times a second is told some
times, and then how many lines like it were left out.

A kind of line is the text as it stands in the code, with the client's address, and where an error came from.
Lines that are no client's doing all stand, such as each log that lost records; and so do those for debugging.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

LINES = 100
SECONDS = 10.0
"""Of each kind so many lines in so many seconds."""
_MOST_KINDS = 1000  # beyond that, addresses are not told apart

_OF_ANYBODY = ("kbroker.errors", "kbroker.pending", "asyncio")
"""Loggers of what went wrong without a word about whose request it was."""

Kind = tuple[object, ...]


class _Window:
    __slots__ = ("last", "left_out", "lines", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.lines = 0
        self.left_out = 0
        self.last: logging.LogRecord | None = None


class LogLimit(logging.Filter):
    """A filter of the handler that writes the log."""

    def __init__(self, clock: Callable[[], float], emit: Callable[[logging.LogRecord], object]) -> None:
        """``emit`` writes a line, past this filter."""
        super().__init__()
        self._clock = clock
        self._emit = emit
        self._lock = Lock()  # threads log, too
        self._windows: dict[Kind, _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO or not ("peer" in record.__dict__ or record.name in _OF_ANYBODY):
            return True
        now = self._clock()
        over: _Window | None = None
        with self._lock:
            kind = self._kind(record)
            window = self._windows.get(kind)
            if window is None or now - window.since >= SECONDS:
                over = window
                window = self._windows[kind] = _Window(now)
            window.lines += 1
            allowed = window.lines <= LINES
            if not allowed:
                window.left_out += 1
                window.last = record
        if over is not None:
            self._tell(over)
        return allowed

    def sweep(self) -> None:
        """Tell what was left out, of kinds of which nothing more comes. To be called from time to time."""
        now = self._clock()
        with self._lock:
            over = [kind for kind, window in self._windows.items() if now - window.since >= SECONDS]
            windows = [self._windows.pop(kind) for kind in over]
        for window in windows:
            self._tell(window)

    def _kind(self, record: logging.LogRecord) -> Kind:
        kind: Kind = (record.name, record.levelno, record.msg, _origin(record))
        with_peer = (*kind, getattr(record, "peer", None))
        if with_peer in self._windows or len(self._windows) < _MOST_KINDS:
            return with_peer
        return kind

    def _tell(self, window: _Window) -> None:
        last = window.last
        if last is None:
            return
        text = f"{window.left_out} lines like this one were left out in {SECONDS:g} s, the last: %s"
        told = logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, text, (), None)
        told.args = (_message(last),)
        told.__dict__["left_out"] = window.left_out
        if (peer := getattr(last, "peer", None)) is not None:
            told.__dict__["peer"] = peer
        self._emit(told)


def _origin(record: logging.LogRecord) -> Kind:
    """Where an error was raised that is logged with its traceback."""
    if not record.exc_info or record.exc_info[0] is None:
        return ()
    kind, _, trace = record.exc_info
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return kind, "" if trace is None else trace.tb_frame.f_code.co_filename, trace and trace.tb_lineno


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # its arguments do not fit its text: the handler tells of such lines
        return str(record.msg)
