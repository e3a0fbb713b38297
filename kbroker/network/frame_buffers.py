"""Buffers for large frames, used again and again.

A fresh buffer of a megabyte costs more in page faults than all else that is done with the frame.
"""

from __future__ import annotations

_KEPT_BYTES = 16 * 1024 * 1024
_STEP = 64 * 1024  # sizes are rounded up to this, so that frames of about one size share buffers


class FrameBuffers:
    def __init__(self) -> None:
        self._free: list[bytearray] = []
        self._free_bytes = 0
        self._in_use = False  # one was taken since `let_go_unused` was called

    def take(self, size: int) -> bytearray:
        """A buffer of at least this size, with any content."""
        self._in_use = True
        for index in range(len(self._free) - 1, -1, -1):
            if size <= len(self._free[index]) <= 4 * max(size, _STEP):
                buffer = self._free.pop(index)
                self._free_bytes -= len(buffer)
                return buffer
        return bytearray(-(-size // _STEP) * _STEP)

    def give_back(self, buffer: bytearray) -> None:
        if self._free_bytes + len(buffer) <= _KEPT_BYTES:
            self._free.append(buffer)
            self._free_bytes += len(buffer)

    def let_go_unused(self) -> None:
        """Keep none if none was needed since the last time that this was called."""
        if not self._in_use:
            self._free.clear()
            self._free_bytes = 0
        self._in_use = False
