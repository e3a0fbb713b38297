"""Bytes of a file that the kernel sends to a peer, without anybody here looking at them."""

from __future__ import annotations

from kbroker.storage.files import Files, OpenFile


class FileRange:
    """What is still to be sent of it."""

    __slots__ = ("_file", "_files", "_position", "_size")

    def __init__(self, files: Files, file: OpenFile, position: int, size: int) -> None:
        self._files = files
        self._file = file  # held, so that it stays open though its segment be deleted
        self._position = position
        self._size = size

    def __len__(self) -> int:
        return self._size

    def send(self, descriptor: int) -> None:
        """Send what `descriptor` takes now; BlockingIOError if it takes nothing."""
        sent = self._files.send(descriptor, self._file, self._size, self._position)
        if not sent:
            raise EOFError(f"the file ends before {self._position}")
        self._position += sent
        self._size -= sent

    def read(self) -> bytes:
        """All of it, waiting for the disk."""
        return self._files.read_at(self._file, self._size, self._position)
