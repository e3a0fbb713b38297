"""What goes out over a connection, in its order: buffers by its transport, parts of files by the kernel.

The transport cannot send files, so the kernel is asked directly whenever the transport has nothing left to
write. What it does not take at once is kept here, and all that comes behind it. Whether the socket takes more
is watched through a descriptor of our own for it: the loop has the transport's for itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

from kbroker.pending import Pending
from kbroker.storage.segments.file_range import FileRange

logger = logging.getLogger("kbroker.connection")

Parts = list[Any]  # bytes, bytearray, memoryview or FileRange


class Outgoing:
    __slots__ = ("_closing", "_descriptor", "_kept", "_resumed", "_transport", "paused", "sends_files")

    def __init__(self, transport: asyncio.Transport, resumed: Callable[[], None]) -> None:
        # With a mark of zero a write is tried at once, and we hear of it when it did not go out whole.
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._resumed = resumed
        self._kept: Parts = []  # begins with a part of a file
        self._descriptor = -1
        self._closing = False
        # What the kernel sends from a file nobody has encrypted.
        self.sends_files = getattr(transport, "encrypts", False) is not True
        self.paused = False  # not all of what was written has gone out; `resumed` is called when it has

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() + sum(map(len, self._kept))

    def write(self, parts: Parts) -> None:
        if self._kept:
            self._kept += parts
            return
        start = 0
        for index, part in enumerate(parts):
            if not isinstance(part, FileRange):
                continue
            if index > start:
                self._transport.writelines(parts[start:index])
            if self.paused or not self._send(part):
                self._kept = parts[index:]
                return
            start = index + 1
        if start < len(parts):
            self._transport.writelines(parts[start:] if start else parts)

    def pause(self) -> None:
        """By the transport, within a write that does not go out whole."""
        self.paused = True

    def resume(self) -> None:
        """By the transport, or because the socket takes more of a file."""
        self.paused = False
        if self._kept:
            parts, self._kept = self._kept, []
            self.write(parts)
            if self.paused:
                return
        if self._closing:
            self._transport.close()
        else:
            self._resumed()

    def close(self) -> None:
        """Close the transport once everything has gone out."""
        self._closing = True
        if not self._kept:
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        self._kept = []
        self._transport.abort()

    def lost(self) -> None:
        """The connection is gone."""
        self._kept = []
        self._resumed = _nobody  # who is told holds this, too
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _send(self, part: FileRange) -> bool:
        """Send what the socket takes now; whether that was all. If not, `resume` goes on with it."""
        try:
            if not self.sends_files:
                raise OSError("a part of a file on an encrypted connection")
            if self._descriptor < 0:
                self._descriptor = os.dup(self._transport.get_extra_info("socket").fileno())
            while len(part):
                part.send(self._descriptor)
            return True
        except BlockingIOError:
            asyncio.get_running_loop().add_writer(self._descriptor, self._writable, part)
        except (OSError, EOFError) as error:
            self._give_up(error)
        self.paused = True
        return False

    def _writable(self, part: FileRange) -> None:
        asyncio.get_running_loop().remove_writer(self._descriptor)
        part.load().then(self._loaded)

    def _loaded(self, settled: Pending[None]) -> None:
        if self._descriptor < 0:
            return
        try:
            settled.result()
        except OSError as error:
            self._give_up(error)
        else:
            self.resume()

    def _give_up(self, error: Exception) -> None:
        if not isinstance(error, ConnectionError):
            logger.error("closing a connection: its records cannot be sent: %s", error)
        self.abort()


def _nobody() -> None:
    pass
