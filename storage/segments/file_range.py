"""Bytes of a file that the kernel sends to a peer, without anybody here looking at them."""

from __future__ import annotations

from kbroker.pending import Pending
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.worker import Worker

_LOAD_BYTES = 1 << 20


class FileRange:
    """What is still to be sent of it. Only what was just loaded is sent: nobody waits for the disk."""

    __slots__ = ("_file", "_files", "_loaded", "_position", "_size", "_worker")

    def __init__(self, files: Files, worker: Worker, file: OpenFile, position: int, size: int) -> None:
        """Of bytes that are in the page cache."""
        self._files = files
        self._worker = worker
        self._file = file  # held, so that it stays open though its segment be deleted
        self._position = position
        self._size = size
        self._loaded = size

    def __len__(self) -> int:
        return self._size

    def send(self, descriptor: int) -> None:
        """Send what `descriptor` takes now; BlockingIOError: it takes nothing, or `load` comes first."""
        if not self._loaded:
            raise BlockingIOError
        try:
            sent = self._files.send(descriptor, self._file, self._loaded, self._position)
        except BlockingIOError:
            self._loaded = 0  # until it takes more, the page cache may have lost them
            raise
        if not sent:
            raise EOFError(f"the file ends before {self._position}")
        self._position += sent
        self._size -= sent
        self._loaded -= sent

    def load(self) -> Pending[None]:
        """Have a worker load what is sent next."""
        size, position = min(self._size, _LOAD_BYTES), self._position
        self._loaded = size
        return self._worker.run(lambda: self._files.load_pages(self._file, size, position))
