"""WebSocket as uvicorn speaks it, within our limits of what a client may make the broker hold.

Invariants:
- What has come of messages counts in the budget until it is taken up; no more is read while that is tight.
- A message that has begun comes whole within kbroker.http.request.timeout.ms, or its client is told so and
  closed. What it has may be no more than kbroker.http.max.request.bytes, of which each fragment takes some.
- Who does not take what is sent is not read either: answers, pongs among them, cannot pile up.
- A client is alive as long as it answers pings, or anything moves, in either direction.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode

from kbroker.http.exchange import ClientGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from websockets.frames import Frame

    from kbroker.http.connection import HttpConnection
    from kbroker.http.problems import Problem

# What the libraries say of each peer, whose queries and headers may hold secrets, is not for our log.
logger = logging.getLogger("kbroker.http.websocket")
logger.addFilter(lambda record: record.msg == "Exception in ASGI application\n")

PING_SECONDS = 30.0
_PARSED_BYTES = 4 * 1024  # at a time: very short messages take many times their bytes
_MESSAGE_BYTES = 256  # that a message takes besides its content, and each fragment of it
_LONGEST_REASON = 123  # bytes
_GRACE_SECONDS = 1.0  # of a stop


class WebSocketSpeaker(WebSocketsSansIOProtocol):
    """One connection, from its upgrade on."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection = cast("HttpConnection", transport)
        self._unparsed = b""
        self._held_bytes = 0
        self._message_bytes = 0  # of the one that is coming
        self._queued_bytes = 0  # of those that have come whole
        self._moved_bytes = 0  # in either direction, when the last ping was sent
        self._withdraw: Callable[[], None] | None = None  # a wait for the budget
        self._parsed_bytes = self._framed_bytes = 0  # since the handshake, and in whole frames
        self._take_frame = self.conn.recv_frame
        self.conn.recv_frame = self._count_frame  # type: ignore[method-assign]
        self.app_state = {**self.app_state, "speaker": self}
        self.logger = self.conn.logger = logger
        self.conn.debug = False
        super().connection_made(transport)

    # in

    @property
    def awaits_more(self) -> bool:
        """Always: who goes says so by a frame."""
        return True

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    def _parse(self) -> None:
        connection = self._connection
        while self._unparsed and not self.read_paused and not connection.writing_paused:
            part, self._unparsed = self._unparsed[:_PARSED_BYTES], self._unparsed[_PARSED_BYTES:]
            if self.handshake_initiated:
                self._parsed_bytes += len(part)
            super().data_received(part)
        self._account()

    def _count_frame(self, frame: Frame) -> None:
        size = len(frame.data)
        self._framed_bytes += size + (6 if size < 126 else 8 if size < 1 << 16 else 14)
        self._take_frame(frame)

    async def receive(self) -> Any:
        message = await super().receive()
        if self.queue.empty():
            self._queued_bytes = 0
        self._parse()
        return message

    def handle_text(self, event: Frame) -> None:
        self._message_bytes = 0
        self._note(event)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._message_bytes = 0
        self._note(event)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        self._note(event)
        if self._message_bytes > self.config.ws_max_size + _MESSAGE_BYTES:
            self._fail(CloseCode.MESSAGE_TOO_BIG, "The message has too many parts.")
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """A message is there. What is binary is refused, whatever it holds."""
        parts, self.frames = self.frames, []
        if self.close_sent:
            return
        if self.curr_msg_data_type == "bytes":
            self.queue.put_nowait({"type": "websocket.receive", "bytes": b""})
        else:
            try:
                text = b"".join(parts).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "A text message is UTF-8.")
                return
            self.queue.put_nowait({"type": "websocket.receive", "text": text})
        self._queued_bytes += self._message_bytes
        self._message_bytes = 0
        self.read_paused = True
        self._connection.pause_reading()

    def _note(self, event: Frame) -> None:
        self._message_bytes += len(event.data) + _MESSAGE_BYTES

    def _account(self) -> None:
        """For what is held, and for how long a message has been coming."""
        connection = self._connection
        if self._connection.lost:
            return
        held = len(self._unparsed) + len(self.conn.reader.buffer) + self._message_bytes + self._queued_bytes
        more, self._held_bytes = held - self._held_bytes, held
        connection.set_aside(more)
        begun = self._message_bytes or self._parsed_bytes != self._framed_bytes
        if not begun:
            connection.budget.body_ended(self)
        elif more > 0 and self._withdraw is None and not connection.budget.roomy:
            self._wait_for_room(more)
        if self.read_paused or connection.writing_paused or not begun:
            connection.head_since = None
        elif connection.head_since is None:
            connection.head_since = connection.last_active

    def _wait_for_room(self, size: int) -> None:
        budget = self._connection.budget
        self._connection.pause_reading()

        def granted() -> None:
            self._withdraw = None
            budget.give_back(size)
            self._read_on()

        self._withdraw = budget.reserve_for_body(size, granted, self)

    def _read_on(self) -> None:
        connection = self._connection
        if not self.read_paused and not connection.writing_paused and self._withdraw is None:
            connection.resume_reading()

    # out

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None:  # a refusal ends the handshake, too
            self.handshake_complete = self.handshake_complete or self.close_sent

    async def write(self, frames: bytes) -> None:
        """Whole frames (`text_frame`). Raises ClientGone."""
        if self.close_sent or self._connection.lost or self._connection.is_closing():
            raise ClientGone
        self._connection.write(frames)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._connection.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._parse()
        self._read_on()

    # whether the client is alive

    def send_keepalive_ping(self) -> None:
        if self._connection.writing_paused:  # it would stand behind what the client does not take
            self.schedule_ping()
            return
        self._moved_bytes = self._connection.moved_bytes
        super().send_keepalive_ping()

    def keepalive_timeout(self) -> None:
        connection = self._connection
        if connection.writing_paused or connection.moved_bytes != self._moved_bytes:
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        connection.abort()

    # the end

    def shutdown(self) -> None:
        """The server stops."""
        if not self.handshake_complete:
            super().shutdown()
            return
        self._fail(CloseCode.GOING_AWAY, "The broker stops.")
        last_moment = self.loop.call_later(_GRACE_SECONDS, self._connection.abort)
        self._connection.on_close(last_moment.cancel)

    def refuse(self, problem: Problem) -> None:
        """It has not said in time what it began to say."""
        if self._withdraw is not None:
            self._fail(CloseCode.TRY_AGAIN_LATER, "The broker has no room for the message: send it later.")
            return
        self._fail(CloseCode.POLICY_VIOLATION, problem.detail)

    def _fail(self, code: int, reason: str) -> None:
        self.stop_keepalive()
        if not self.close_sent and not self._connection.lost:
            reason = short_reason(reason)
            self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
            self.conn.fail(code, reason)
            self._connection.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self._connection.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connection.set_aside(-self._held_bytes)
        self._held_bytes = 0
        if self._withdraw is not None:
            self._withdraw()
            self._withdraw = None
        self._connection.budget.body_ended(self)
        super().connection_lost(cast("Exception | None", exc))
        del self.conn.recv_frame  # what refers to each other would wait for the garbage collector


def short_reason(text: str) -> str:
    """As long as a close frame may have it."""
    return text.encode()[:_LONGEST_REASON].decode(errors="ignore")


def text_frame(text: bytes) -> bytes:
    """One text message, as a server sends it."""
    size = len(text)
    if size < 126:
        return b"\x81%c%s" % (size, text)
    if size < 1 << 16:
        return b"\x81\x7e%s%s" % (size.to_bytes(2), text)
    return b"\x81\x7f%s%s" % (size.to_bytes(8), text)
