"""One HTTP connection: to its socket (or to TLS) a protocol, to what speaks HTTP on it a transport.

Invariants:
- It is counted and limited from the accept on, as a connection of Kafka's protocol is.
- What speaks HTTP is loaded with the first connection of the process. Until it is there the peer's bytes
  wait, as many as one read brings.
- A peer that does not take what it is sent is sent no more; one that does not end the head of its request in
  time, or sends too long a head, is told so and closed.
- Who is answered in the middle of what they send gets the answer: a socket that is closed with bytes unread
  takes back what it has sent. So they are read for a while, and dropped.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from kbroker.config.listeners import HTTP
from kbroker.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.http.problems import Problem
    from kbroker.network.budget import Budget
    from kbroker.network.connections import Connections
    from kbroker.pending import Pending

logger = logging.getLogger("kbroker.http")

_LINGER_SECONDS = 2
_LINGER_BYTES = 4 * 1024 * 1024
_UNSENT_BYTES = 128 * 1024
_TIGHT_READ_BYTES = 16 * 1024  # what is read at a time when the budget is nearly used up


class Speaker(Protocol):
    """What speaks HTTP, or WebSocket after an upgrade, on a connection."""

    def connection_made(self, transport: asyncio.Transport) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def connection_lost(self, exc: BaseException | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    @property
    def awaits_more(self) -> bool:
        """Whether it is in the midst of something that a peer that sends no more cannot end."""

    def shutdown(self) -> None:
        """End what is under way, then close."""

    def refuse(self, problem: Problem) -> None:
        """Tell the peer what is wrong, and close."""


class Speakers(Protocol):
    """What is loaded with the first connection."""

    def speaker(self, connection: HttpConnection) -> Speaker: ...
    def ended(self, connection: HttpConnection) -> None: ...


class HttpHost(Protocol):
    """What a connection needs of the server."""

    broker: Broker
    connections: Connections
    scratch: memoryview

    def now_ms(self) -> int: ...
    def speakers(self) -> Pending[Speakers]:
        """Those of the process, once they are loaded."""


class HttpConnection(asyncio.BufferedProtocol):
    protocol = HTTP
    limited = True

    def __init__(
        self, host: HttpHost, listener: str, *, secure: bool = False, asks_for_logins: bool = False
    ) -> None:
        self._host = host
        self.listener = listener
        self.secure = secure
        self.authenticated = not asks_for_logins
        """Whether a request on it was of somebody known: each says for itself who sends it."""
        self.peer_host = ""
        self.peer_port = 0
        self.last_active = 0
        self.principal: Principal = ANONYMOUS
        """Whose certificate was shown."""
        self.known_as = b""
        """By which name it is asked, once that was looked at."""
        self.held_bytes = 0
        """What its requests hold of the budget."""
        self.head_since: int | None = None
        """When the head of a request, or a message, began to come that has not ended yet; None: none is
        awaited."""
        self.busy = False
        """Whether a request is being answered."""
        self.upgraded = False
        """Whether WebSocket is spoken."""
        self.answered_early = False
        """Whether its last answer was sent before its request had come whole."""
        self.sends_no_more = False
        """Whether the peer has said so: it is gone, or it still waits for what it asked for."""
        self.on_eof: Callable[[], None] | None = None
        """Of a request that must not be answered to a peer that may be gone."""
        self.on_change: Callable[[], None] | None = None
        """Of a stream: the peer has taken all, is gone, or the server stops."""
        self.writing_paused = False
        """Whether the peer has yet to take what it was sent."""
        self.stopping = False
        """Whether the server stops: what has no end of its own ends now."""
        self.lost = False
        """Whether it has ended."""
        self._lingering: asyncio.TimerHandle | None = None
        self._dropped_bytes = 0
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self._speaker: Speaker | None = None
        self._speakers: Speakers | None = None
        self.number = 0
        self._early = b""
        self._received_bytes = 0
        self._sent_bytes = 0
        self._reading = True
        self._on_drained: Callable[[], None] | None = None
        self._on_close: dict[object, Callable[[], object]] = {}

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)  # what is not taken yet counts as held, to the byte
        peer = transport.get_extra_info("peername")
        self.peer_host, self.peer_port = (peer[0], peer[1]) if peer else ("", 0)
        self.last_active = self.head_since = self._host.now_ms()
        refusal = self._host.connections.admit(self)
        if refusal is not None:
            self._log_end(refusal)
            self._transport.close()
            return
        rates = self._host.broker.connection_rates
        if rates is None:
            self._begin()
        else:
            self._wait_for_turn(*rates.arrive(self.listener, self.peer_host, self.last_active))

    def _wait_for_turn(self, wait_ms: int, stays: bool) -> None:
        """New connections come faster than they may: this one waits, and may have to go then."""

        def over() -> None:
            if not stays:
                self.abort()
            elif not self.lost:
                self.head_since = self._host.now_ms()
                self._transport.resume_reading()
                self._begin()

        self._transport.pause_reading()
        self._host.broker.scheduler.after(wait_ms, over)

    def _begin(self) -> None:
        self._host.speakers().then(self._loaded)

    def _loaded(self, loaded: Pending[Speakers]) -> None:
        if self.lost:
            return
        if not loaded.succeeded:
            self.abort()
            return
        self._speakers = loaded.result()
        self._speaker = self._speakers.speaker(self)
        self._speaker.connection_made(cast("asyncio.Transport", self))
        early, self._early = self._early, b""
        if early:
            if self._reading:
                self._transport.resume_reading()
            self._speaker.data_received(early)

    def secured(self, principal: Principal) -> None:
        """By TLS, before the first byte."""
        self.last_active = self.head_since = self._host.now_ms()
        if not self.authenticated:  # the listener asks for logins, and a certificate is none
            return
        self.principal = principal
        if principal != ANONYMOUS:
            self._tell_login(principal, "success")

    def not_secured(self, reason: str) -> None:
        self._tell_login("unknown", "failure", reason)

    def _tell_login(self, principal: Principal | str, outcome: str, reason: str | None = None) -> None:
        audit = self._host.broker.audit
        if audit is not None:
            audit.login(
                principal=principal,
                address=self.peer_host,
                listener=self.listener,
                mechanism="TLS",
                outcome=outcome,
                reason=reason,
            )

    def get_buffer(self, sizehint: int) -> memoryview:
        scratch = self._host.scratch
        return scratch[:_TIGHT_READ_BYTES] if self.budget.tight else scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._lingering is not None:
            self._dropped_bytes += nbytes
            if self._dropped_bytes > _LINGER_BYTES:
                self.abort()
            return
        data = bytes(self._host.scratch[:nbytes])
        self._received_bytes += nbytes
        self.last_active = self._host.now_ms()
        if self._speaker is not None:
            self._speaker.data_received(data)
        else:
            self._early += data
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The peer sends no more; what it sent whole is answered before the connection ends."""
        if self._lingering is not None:
            self._transport.close()
        elif self._speaker is None or not self.busy:
            self.close()
        elif self._speaker.awaits_more:
            self.abort()
        self.sends_no_more = True
        if self.on_eof is not None:
            self.on_eof()
        self._changed()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost = True
        if self._lingering is not None:
            self._lingering.cancel()
        self._host.connections.forget(self)
        if self._speaker is not None:
            self._speaker.connection_lost(exc)
        if self._speakers is not None:
            self._speakers.ended(self)
        callbacks, self._on_close = self._on_close, {}
        for callback in callbacks.values():
            callback()
        if self._on_drained is not None:
            self._on_drained()
        self._changed()
        self._speaker = None  # they refer to each other

    def pause_writing(self) -> None:
        self.writing_paused = True
        if self._speaker is not None:
            self._speaker.pause_writing()

    def resume_writing(self) -> None:
        self.last_active = self._host.now_ms()
        self.writing_paused = False
        if self._speaker is not None:
            self._speaker.resume_writing()
        self._changed()

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    # the speaker's side

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "sslcontext":
            return self if self.secure else default
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, speaker: asyncio.BaseProtocol) -> None:
        """After an upgrade."""
        self._speaker = cast("Speaker", speaker)
        self.busy = self.upgraded = True

    def is_closing(self) -> bool:
        return self._lingering is not None or self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def write(self, data: bytes) -> None:
        if self._lingering is None:
            self._sent_bytes += len(data)
            self._transport.write(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.write(b"".join(parts))

    def pause_reading(self) -> None:
        self._reading = False
        if not self.lost and self._lingering is None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._reading = True
        if not self.lost and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Once everything has gone out."""
        if self._lingering is not None:
            return
        if self.answered_early and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
            self._lingering = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self.abort)
            self._transport.resume_reading()
        else:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def on_close(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Called once, when the connection is gone. What comes back calls it off."""
        key = object()
        self._on_close[key] = callback
        return lambda: self._on_close.pop(key, None)

    def keep_little_unsent(self) -> None:
        """Let the system hold back little of what the peer does not take: what is behind it counts here."""
        connected = getattr(self._transport, "beneath", self._transport).get_extra_info("socket")
        if connected is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)

    # what it holds

    @property
    def budget(self) -> Budget:
        return self._host.broker.budget

    def hold(self, size: int) -> None:
        """So many bytes more are kept for the peer; fewer, if it is negative."""
        self.held_bytes += size
        if size > 0:
            self.budget.take(size)
        elif size:
            self.budget.give_back(-size)

    def set_aside(self, size: int) -> None:
        """The same of what waits for something to be done with it: that is not to wait for this."""
        self.held_bytes += size
        if size > 0:
            self.budget.set_aside(size)
        elif size:
            self.budget.take_up(-size)

    # the server's side

    @property
    def moved_bytes(self) -> int:
        """How many the peer has sent, or taken."""
        return self._received_bytes + self._sent_bytes - self._transport.get_write_buffer_size()

    @property
    def progress(self) -> int | None:
        """None: it holds nothing, or the peer is not who is waited for."""
        speaker = self._speaker
        awaited = self.writing_paused or (self._reading and speaker is not None and speaker.awaits_more)
        return self.moved_bytes if self.held_bytes and awaited else None

    def refuse(self, problem: Problem) -> None:
        if self._speaker is not None:
            self._speaker.refuse(problem)

    def idle_since(self, now_ms: int) -> int | None:
        waits_for_us = self.busy and not (self._speaker is not None and self._speaker.awaits_more)
        return None if waits_for_us else self.last_active

    def give_up(self, reason: str) -> None:
        self._log_end(reason)
        self.abort()

    def _log_end(self, reason: str) -> None:
        extra = {"connection": self.number, "peer": self.peer_host}
        logger.warning("closing %s: %s", self.peer_host, reason, extra=extra)

    def drain(self, on_drained: Callable[[], None]) -> None:
        self._on_drained = on_drained
        self.stopping = True
        if self._speaker is None:
            self.close()
        else:
            self._speaker.shutdown()
        self._changed()

    def resume(self) -> None:
        """HTTP is not paused with the server."""
