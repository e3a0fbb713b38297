"""What goes out on the connection of a stream: as fast as its client takes it, and no faster.

Invariants:
- Nothing is written before the client has taken what was written before.
- A client that takes nothing for kbroker.http.stream.timeout.ms is closed.
- When the server stops, a client has a moment to take what it was sent; then it is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kbroker.http.authentication import on_session_end
from kbroker.http.exchange import ClientGone
from kbroker.http.problems import Problem

if TYPE_CHECKING:
    from kbroker.http.connection import HttpConnection
    from kbroker.http.request import HttpRequest

_GRACE_SECONDS = 1.0  # of a stop
_LINGER_SECONDS = 10.0  # for what was sent last


class Validity:
    """Whether the caller is still who they said they are; looked at from the first moment of a stream on."""

    def __init__(self, request: HttpRequest) -> None:
        self.problem: Problem | None = None
        self.on_end: Callable[[], None] | None = None
        self.stop = on_session_end(request, self._ended)

    def _ended(self, reason: str) -> None:
        self.problem = Problem(401, f"Say again who you are: {reason}.")
        if self.on_end is not None:
            self.on_end()

    def check(self) -> None:
        if self.problem is not None:
            raise self.problem


class Outlet:
    def __init__(self, request: HttpRequest, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._connection: HttpConnection = request.connection
        self._settings = request.broker.settings
        self._write = write
        self._turn = asyncio.Lock()
        self._something = asyncio.Event()
        self._ends = False  # soon, whatever happens
        self._connection.keep_little_unsent()
        self._connection.on_change = self._changed
        self._changed()

    def close(self) -> None:
        self._connection.on_change = None
        if self._connection.lost:
            return
        if self._connection.is_closing():
            self._abort_after(_LINGER_SECONDS)

    @property
    def stopping(self) -> bool:
        """Whether the server stops."""
        return self._connection.stopping

    async def send(self, data: bytes) -> None:
        """Raises ClientGone."""
        async with self._turn:
            await self.drained()
            await self._write(data)

    async def drained(self) -> None:
        """Until the client has taken all. Raises ClientGone."""
        connection = self._connection
        self.check()
        while connection.writing_paused:
            timeout_ms: int = self._settings["kbroker.http.stream.timeout.ms"]
            left = connection.get_write_buffer_size()
            woken = await self.until_changed(timeout_ms / 1000)
            self.check()
            if not woken and connection.get_write_buffer_size() >= left:
                connection.give_up(f"it took nothing of a stream for {timeout_ms} ms")
                raise ClientGone

    def check(self) -> None:
        if self._connection.lost or self._connection.sends_no_more:
            raise ClientGone

    def change(self) -> None:
        """Something is new, for who waits until then."""
        self._something.set()

    async def until_changed(self, seconds: float) -> bool:
        """Whether something has changed before the time was over."""
        try:
            async with asyncio.timeout(seconds):
                await self._something.wait()
        except TimeoutError:
            return False
        self._something.clear()
        return True

    def _changed(self) -> None:
        if self._connection.stopping and not self._ends:
            self._ends = True
            self._abort_after(_GRACE_SECONDS)
        self.change()

    def _abort_after(self, seconds: float) -> None:
        if not self._connection.lost:
            last_moment = asyncio.get_running_loop().call_later(seconds, self._connection.abort)
            self._connection.on_close(last_moment.cancel)
