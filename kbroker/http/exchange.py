"""One request and its answer on a connection: receive and send as ASGI has them, and a shorter way to answer.

Invariants:
- What came of the body and was not asked for is bounded: nothing is read meanwhile.
- An answer has ended when its peer has taken it, but for what the system and the write buffer hold: until
  then the next request of the connection does not begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kbroker.http.speaking import HttpSpeaker

UNREAD_BYTES: Final = 64 * 1024  # of a body, before no more of it is read
_JOINED_BYTES: Final = 64 * 1024  # of an answer that is written with its head
STATUS_LINES: Final = {
    status: f"HTTP/1.1 {status} {phrase}\r\n".encode()
    for status, phrase in ((int(each), each.phrase) for each in HTTPStatus)
}
_WITHOUT_BODY: Final = (204, 304)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

Headers = list[tuple[bytes, bytes]]


class ClientGone(Exception):
    """Nobody is there to be answered."""


class Exchange:
    __slots__ = (
        "_begun",
        "_changed",
        "_chunked",
        "_end_told",
        "_expects_continue",
        "_parts",
        "_speaker",
        "answered",
        "came_whole",
        "gone",
        "keep_alive",
        "scope",
        "unread_bytes",
    )

    def __init__(
        self, speaker: HttpSpeaker, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.came_whole = False
        """Whether all of the request is there."""
        self.answered = False
        self.gone = False
        """Whether nobody is there to be answered."""
        self._speaker = speaker
        self._expects_continue = expects_continue
        self._parts: list[bytes] = []  # of the body, not asked for yet
        self.unread_bytes = 0
        """What came of the body and was not asked for yet."""
        self._end_told = False
        self._changed: asyncio.Event | None = None
        self._begun = False  # the answer
        self._chunked = False

    # the connection's side

    def received(self, part: bytes) -> None:
        if not self.answered:
            self._parts.append(part)
            self.unread_bytes += len(part)
            self._tell()

    def ended(self) -> None:
        self.came_whole = True
        self._tell()

    def lost(self) -> None:
        self.gone = True
        self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set()

    # the application's side

    async def receive(self) -> dict[str, Any]:
        """As ASGI has it: parts of the body, then, once the answer has ended or the client is gone, that."""
        while not (self.gone or self.answered):
            if self._parts or (self.came_whole and not self._end_told):
                body = b"".join(self._parts)
                self._parts.clear()
                self.unread_bytes = 0
                self._end_told = self.came_whole
                self._speaker.read_on()
                return {"type": "http.request", "body": body, "more_body": not self.came_whole}
            if self._expects_continue:
                self._expects_continue = False
                self._speaker.write(_CONTINUE)
            self._speaker.read_on()
            self._changed = changed = self._changed or asyncio.Event()
            changed.clear()
            await changed.wait()
        return {"type": "http.disconnect"}

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """All of it. Returns once it is taken."""
        await self._speaker.writable()
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        if status not in _WITHOUT_BODY:
            lines.append(f"content-length: {len(body)}\r\n")
        if self.scope["method"] == "HEAD":
            body = b""
        head = self._head(status, "".join(lines).encode("latin-1"), len(lines))
        if len(body) <= _JOINED_BYTES:
            self._speaker.write(head + body)
        else:
            self._speaker.write(head)
            self._speaker.write(body)
        await self._end()

    async def send(self, message: Any) -> None:
        """As ASGI has it: the head of the answer, and its body, part by part. ClientGone: to nobody."""
        await self._speaker.writable()
        if self.gone:
            raise ClientGone
        if not self._begun:
            self._send_head(message["status"], list(message.get("headers", ())))
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self.scope["method"] == "HEAD":
            body = b""
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        if body:
            self._speaker.write_soon(body)
        if not more:
            await self._end()

    def _send_head(self, status: int, headers: Headers) -> None:
        names = {name.lower() for name, _ in headers}
        if b"content-length" not in names and status not in _WITHOUT_BODY:
            if self.scope["http_version"] == "1.0":
                self.keep_alive = False  # the end of the connection is that of the answer
            else:
                self._chunked = True
                headers.append((b"transfer-encoding", b"chunked"))
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self._speaker.write_soon(self._head(status, lines, len(headers)))

    def _head(self, status: int, lines: bytes, count: int) -> bytes:
        if lines.count(b"\n") != count or lines.count(b"\r") != count:
            raise ValueError("a header has a line break")
        self._begun = True
        self._expects_continue = False
        last = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        return STATUS_LINES[status] + self._speaker.common_headers + lines + last

    async def _end(self) -> None:
        self._speaker.flush()
        await self._speaker.writable()
        self.answered = True
        self._tell()
        self._speaker.answered(self)

    def give_up(self) -> None:
        """Nobody answers it any more."""
        if not (self.answered or self.gone):
            self.answered = True
            self.keep_alive = False
            if not self._begun:
                self._speaker.write(self._head(500, b"content-length: 0\r\n", 1))
            self._speaker.answered(self)
