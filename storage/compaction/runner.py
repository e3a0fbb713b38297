"""Where a compaction's work is done: in a process of its own or, for tests, in this one.

A runner has one job at a time. Its events are asked for, without waiting; the last one is Finished or Failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from kbroker.protocol.records import RecordError
from kbroker.storage.compaction.cleaner import Cleaner
from kbroker.storage.compaction.jobs import CleaningJob, Event, Failed, event_from_json
from kbroker.storage.files import Files

_READ_BYTES = 1 << 16
_WORKER = "kbroker.storage.compaction.worker"


def run(files: Files, job: CleaningJob) -> Iterator[Event]:
    """Do a job; a failure is its last event."""
    try:
        yield from Cleaner(files, job).clean()
    except RecordError as error:
        yield Failed(str(error), corrupt=True)
    except (OSError, MemoryError) as error:
        yield Failed(str(error))


class Runner(Protocol):
    def start(self, job: CleaningJob) -> None:
        """Raises OSError if it cannot be started."""
        ...

    def next_event(self) -> Event | None:
        """None: there is none yet."""
        ...

    def stop(self) -> None:
        """Give up the job, if there is one, and all that it takes to do one."""
        ...


class InlineRunner:
    """Works when it is asked for an event."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._events: Iterator[Event] = iter(())

    def start(self, job: CleaningJob) -> None:
        self._events = run(self._files, job)

    def next_event(self) -> Event | None:
        return next(self._events, None)

    def stop(self) -> None:
        self._events = iter(())


class ProcessRunner:
    """A worker process, started for the first job and kept until `stop`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent = b""
        self._received = b""
        self._events: deque[Event] = deque()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self, job: CleaningJob) -> None:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._process = _start_process()
        self._unsent = json.dumps(job.to_json()).encode() + b"\n"

    def next_event(self) -> Event | None:
        if not self._events and self._process is not None:
            try:
                self._exchange(self._process)
            except BlockingIOError:
                return None
            except (OSError, EOFError) as error:
                self.stop()
                return Failed(f"the worker process ended: {error}")
        return self._events.popleft() if self._events else None

    def _exchange(self, process: subprocess.Popen[bytes]) -> None:
        """Send and receive what goes without waiting."""
        assert process.stdin is not None
        assert process.stdout is not None
        while self._unsent:
            sent = os.write(process.stdin.fileno(), self._unsent)
            self._unsent = self._unsent[sent:]
        data = os.read(process.stdout.fileno(), _READ_BYTES)
        if not data:
            raise EOFError("no more output")
        *lines, self._received = (self._received + data).split(b"\n")
        self._events.extend(event_from_json(json.loads(line)) for line in lines)

    def stop(self) -> None:
        process, self._process = self._process, None
        self._unsent = self._received = b""
        self._events.clear()
        if process is None:
            return
        process.kill()  # it only ever writes files that nobody uses yet
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()


def _start_process() -> subprocess.Popen[bytes]:
    # The worker finds the modules where this process did.
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        bufsize=0,
    )
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
    return process
