"""One client connection: framing, ordered execution, ordered responses, back-pressure.

Invariants:
- Requests are executed in the order they came. The next one starts only when the one before it is answered; a
  Produce whose offsets are assigned may still wait for its fsync meanwhile.
- Responses leave in the order of the requests.
- Bytes are read into one scratch area that all connections share (the loop reads and hands over within one
  callback). A request is decoded and handled in place; what is left of an unfinished frame is kept aside. A
  large one gets a buffer of its own, which grows with what arrives when the process's budget is short, and
  counts in it.
- While a request waits, or the peer does not take its answers, nothing more is read from it: what one peer
  can make us hold is bounded, and counts in the budget.
- Requests that came together are executed for a few milliseconds; then others have their turn.
- What came before the peer ended its side is executed.
- A frame that makes no sense closes this connection with one log line, and nothing else happens.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, cast

from kbroker.config.listeners import KAFKA
from kbroker.network.outgoing import Outgoing
from kbroker.requests.answers import BadRequest, Buffers, Deferred
from kbroker.requests.session import Session
from kbroker.requests.traffic import HEAD_BYTES
from kbroker.security.principal import ANONYMOUS, Principal
from kbroker.storage.segments.file_range import FileRange

if TYPE_CHECKING:
    from kbroker.network.budget import Budget
    from kbroker.network.connections import Connections
    from kbroker.network.frame_buffers import FrameBuffers
    from kbroker.quotas.connection_rates import ConnectionRates
    from kbroker.requests.session import Requests

logger = logging.getLogger("kbroker.connection")

SCRATCH_BYTES = 256 * 1024
_TIGHT_READ_BYTES = 16 * 1024  # what is read at a time when the budget is nearly used up
_COUNTED_BYTES = 16 * 1024  # of an unfinished frame, from here on, count in the budget
_LARGE_FRAME_BYTES = 64 * 1024  # from here on an unfinished frame is received into a buffer of its own
_FIRST_BUFFER_BYTES = 64 * 1024  # of a frame whose size is not reserved at once
_WHOLE_BUFFER_BYTES = 4 * 1024 * 1024  # a larger frame's never is
_TURN_SECONDS = 0.005  # for the requests of one connection that came together
_MAX_OVERLAPPING = 64  # Produce requests of one connection that may wait for their fsync at the same time
_FLUSH_BYTES = 64 * 1024  # answers are collected up to here while there are requests at hand
_SIZE = struct.Struct(">i")
_API_KEY = 5  # where its low byte stands, behind the length


class Host(Protocol):
    """What a connection needs of the server."""

    requests: Requests
    connections: Connections
    budget: Budget
    frame_buffers: FrameBuffers
    scratch: memoryview
    paused: bool

    def now_ms(self) -> int: ...
    def soon(self, callback: Callable[[], None]) -> None: ...


class _Timed:
    """A request that waits for its answer: what it is, and when what happened to it."""

    __slots__ = ("came", "executed", "head", "long_poll", "settled", "size", "started")

    def __init__(self, frame: memoryview, came: float, started: float) -> None:
        self.head = bytes(frame[:HEAD_BYTES])
        self.size = len(frame)
        self.came = came
        self.started = started
        self.executed = perf_counter()
        self.settled = 0.0
        self.long_poll = False


class _Slot:
    """The place of one response in the order of responses."""

    __slots__ = ("deferred", "frame", "timed")

    def __init__(self, deferred: Deferred | None, frame: Buffers | None, timed: _Timed | None = None) -> None:
        self.deferred = deferred
        self.frame = frame
        self.timed = timed

    @property
    def waits_for_others(self) -> bool:
        return self.deferred is not None and self.deferred.waits_for_others

    def abandon(self) -> None:
        if self.deferred is not None:
            self.deferred.answer.abandon()


class Connection(asyncio.BufferedProtocol):
    protocol = KAFKA
    limited = True

    __slots__ = (
        "_backlog",
        "_blocking",
        "_closed",
        "_draining",
        "_ended",
        "_filled",
        "_frame",
        "_frame_buffer",
        "_frame_size",
        "_host",
        "_muted_until",
        "_on_drained",
        "_out",
        "_out_bytes",
        "_outgoing",
        "_prefix",
        "_receiving",
        "_reserved_read",
        "_reserved_write",
        "_session",
        "_slots",
        "_traffic",
        "_transport",
        "_unmute",
        "_unreserve",
        "_unsent_bytes",
        "_yielded",
        "last_active",
        "listener",
        "number",
        "peer_host",
        "peer_port",
    )

    def __init__(self, host: Host, listener: str) -> None:
        self._host = host
        self.listener = listener
        self.peer_host = ""
        self.peer_port = 0
        self.number = 0
        self.last_active = 0
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self._outgoing: Outgoing = None  # type: ignore[assignment]  # as well
        self._session: Session = None  # type: ignore[assignment]  # as well
        self._traffic = host.requests.broker.traffic
        self._prefix = b""  # the start of an unfinished small frame
        self._frame: memoryview | None = None  # an unfinished large frame, as far as there is room for it
        self._frame_buffer: bytearray | None = None
        self._frame_size = 0
        self._filled = 0
        self._backlog: bytearray | None = None  # whole frames that must wait
        self._slots: deque[_Slot] = deque()
        self._blocking: _Slot | None = None  # the answer that must be there before the next request starts
        self._out: Buffers = []
        self._out_bytes = 0
        self._receiving = False
        self._reserved_read = 0
        self._reserved_write = 0
        self._unsent_bytes = 0
        self._unreserve: Callable[[], None] | None = None  # withdraws a wait for the budget
        self._unmute: Callable[[], None] | None = None  # cancels the end of a wait for a quota
        self._muted_until = 0
        self._closed = False
        self._draining = False
        self._ended = False  # nothing more comes from the peer
        self._yielded = False  # what came is executed further in another turn
        self._on_drained: Callable[[], None] | None = None

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._outgoing = Outgoing(self._transport, self._resumed)
        local = _address(transport.get_extra_info("sockname"))
        self.peer_host, self.peer_port = peer = _address(transport.get_extra_info("peername"))
        self._session = self._host.requests.session(self.listener, local, peer)
        self._session.mute = self.mute
        self._session.part = self._part
        self._session.takes_files = self._outgoing.sends_files
        self.last_active = self._host.now_ms()
        refusal = self._host.connections.admit(self)
        self._session.connection = self.number
        if refusal is not None:
            self._refuse(refusal)
        elif (rates := self._host.requests.broker.connection_rates) is not None:
            self._wait_for_turn(rates)

    def secured(self, principal: Principal) -> None:
        """By TLS, before the first byte: the handshake is done, and this is whose certificate was shown."""
        self.last_active = self._host.now_ms()
        if not self._session.authenticated:  # the listener asks for a login, and a certificate is none
            return
        self._session.principal = principal
        if principal != ANONYMOUS:
            self._tell_login(principal, "success")

    def not_secured(self, reason: str) -> None:
        """By TLS: the handshake failed, for this reason, and the connection is about to end."""
        self._tell_login("unknown", "failure", reason)

    def _tell_login(self, principal: Principal | str, outcome: str, reason: str | None = None) -> None:
        audit = self._host.requests.broker.audit
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
        if self._frame is not None:
            return self._frame[self._filled :]
        scratch = self._host.scratch
        kept = len(self._prefix)
        scratch[:kept] = self._prefix
        budget = self._host.budget
        return (
            scratch[kept:] if budget.used <= budget.tight_above else scratch[kept : kept + _TIGHT_READ_BYTES]
        )

    def buffer_updated(self, nbytes: int) -> None:
        if self._closed:
            return
        self.last_active = self._host.now_ms()
        if self._frame is None:
            view = self._host.scratch[: len(self._prefix) + nbytes]
            self._prefix = b""
            if self._reserved_read:
                self._release_read()
            self._receive(view)
            return
        self._filled += nbytes
        if self._filled == self._frame_size:
            frame, self._frame = self._frame, None
            if self._ready:
                self._receiving = True
                now = perf_counter()
                self._execute(frame, now, now)
                self._receiving = False
                self._release_read()
                self._flush()
            else:
                self._hold(_SIZE.pack(len(frame)), frame)
                self._release_read()
        elif self._filled == len(self._frame):
            self._enlarge(2 * self._filled)

    def eof_received(self) -> bool:
        """The peer asks for no more: what came is executed, what only waits for others is dropped."""
        self._ended = True
        if self._ended_for_good:
            self.close()
        return True

    @property
    def _ended_for_good(self) -> bool:
        if self._slots and not self._slots[-1].waits_for_others:
            return False
        return self._backlog is None or bool(self._slots)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._closed = True
        for slot in self._slots:
            slot.abandon()
        self._slots.clear()
        self._out.clear()
        self._session.end()
        self._outgoing.lost()
        self._frame = None
        self._take_backlog()
        if self._unreserve is not None:
            self._unreserve()
        if self._unmute is not None:
            self._unmute()
        self._release_read()
        self._release_write()
        self._host.connections.forget(self)
        self._drained()

    def pause_writing(self) -> None:
        self._outgoing.pause()

    def resume_writing(self) -> None:
        self._outgoing.resume()

    def _resumed(self) -> None:
        self._release_write()
        self._advance()

    # the server's side

    @property
    def authenticated(self) -> bool:
        """Whether it is known who is at the other end, as far as the listener asks."""
        return self._session.authenticated

    def idle_since(self, now_ms: int) -> int | None:
        """When something last came from the peer or went to it; None while it waits for us."""
        if self._outgoing.paused:
            unsent = self._outgoing.unsent_bytes
            if unsent != self._unsent_bytes:
                self._unsent_bytes = unsent
                self.last_active = now_ms
            return self.last_active
        return None if self._slots or self._unreserve is not None else self.last_active

    @property
    def progress(self) -> int | None:
        """How many bytes of what it holds of the budget the peer has sent or taken; None: it holds none."""
        if self._frame is not None:
            return self._filled if self._unreserve is None else None
        if self._reserved_write:
            return self._reserved_write - self._outgoing.unsent_bytes
        return None

    def give_up(self, reason: str) -> None:
        """Close at once, whatever the peer has not taken yet."""
        logger.warning("closing %s:%s: %s", self.peer_host, self.peer_port, reason, extra=self._who())
        self.abort()

    def close(self) -> None:
        """Close once what is written has gone out."""
        self._closed = True
        self._outgoing.close()

    def abort(self) -> None:
        self._closed = True
        self._outgoing.abort()

    def drain(self, on_drained: Callable[[], None]) -> None:
        """Take no more requests, answer those that are executing, close, then call back.

        Requests that wait for something to happen (a long poll, a rebalance) are dropped: their clients ask
        again.
        """
        self._draining = True
        self._on_drained = on_drained
        if self._closed:
            self._drained()
            return
        self._transport.pause_reading()
        while self._slots and self._slots[-1].frame is None and self._slots[-1].waits_for_others:
            self._slots.pop().abandon()
        self._close_if_drained()

    def _part(self) -> None:
        """The session is over. Later in this turn: the request that ended it may be this connection's own."""

        def drain() -> None:
            if not self._draining:
                self.drain(lambda: None)

        self._host.soon(drain)

    def resume(self) -> None:
        """The server was paused and goes on."""
        if not self._closed:
            self._advance()

    # receiving

    @property
    def _ready(self) -> bool:
        return (
            self._blocking is None
            and not self._outgoing.paused
            and not self._host.paused
            and not self._draining
            and not self._yielded
            and self._unmute is None
            and len(self._slots) < _MAX_OVERLAPPING
        )

    def _receive(self, view: memoryview) -> None:
        """Execute the whole frames in ``view``; keep what is left."""
        self._receiving = True
        came = now = perf_counter()
        turn_ends = came + _TURN_SECONDS
        position, end = 0, len(view)
        size = -1
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(view, position)
            if not 0 <= size <= self._session.max_request_bytes:
                self._refuse(_bad_size(view[position : position + 4], size))
                break
            behind = end - position - 4 - size
            if behind < 0 or not self._ready:
                break
            taken = self._execute_run(view[position:], came) if behind else 0
            if taken:
                now = perf_counter()
            else:
                taken = 4 + size
                now = self._execute(view[position + 4 : position + taken], came, now)
            position += taken
            if self._closed:
                break
            if end - position >= 4 and now > turn_ends:
                self._yielded = True
                self._host.soon(self._next_turn)
                break
        self._receiving = False
        if not self._closed and position < end:
            self._keep(view[position:], size)
        self._flush()

    def _keep(self, rest: memoryview, size: int) -> None:
        if not self._ready:
            self._hold(rest)
        elif len(rest) < 4 or size <= _COUNTED_BYTES:
            self._prefix = bytes(rest)
        elif size <= _LARGE_FRAME_BYTES and not self._host.budget.tight:
            self._prefix = bytes(rest)
            self._reserved_read = len(rest)
            self._host.budget.take(len(rest))
        else:
            self._begin_large(rest[4:], size)

    def _next_turn(self) -> None:
        self._yielded = False
        if not self._closed:
            self._advance()

    def _hold(self, *parts: bytes | memoryview) -> None:
        """Set bytes aside until the request before them is done; read nothing more meanwhile."""
        backlog = bytearray() if self._backlog is None else self._backlog
        for part in parts:
            backlog += part
            self._host.budget.set_aside(len(part))
        self._backlog = backlog
        self._transport.pause_reading()

    def _take_backlog(self) -> bytearray | None:
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            self._host.budget.take_up(len(backlog))
        return backlog

    def _begin_large(self, start: memoryview, size: int) -> None:
        """Receive a frame, of which this is the start, into a buffer of its own."""
        budget = self._host.budget
        budget.take(len(start))  # which waits here, if there is no room for more
        self._reserved_read = len(start)
        self._frame, self._frame_size, self._filled = start, size, len(start)
        at_once = size <= _WHOLE_BUFFER_BYTES and budget.roomy
        self._enlarge(size if at_once else max(2 * len(start), _FIRST_BUFFER_BYTES))
        if self._unreserve is not None:
            self._frame = memoryview(bytes(start))  # others read into the same place meanwhile

    def _enlarge(self, capacity: int) -> None:
        """Let the frame have room for as many bytes, at most for its own, once the budget allows."""
        capacity = min(capacity, self._frame_size)
        waits = False

        def granted() -> None:
            self._unreserve = None
            self._reserved_read = capacity
            buffer = self._host.frame_buffers.take(capacity)
            frame = memoryview(buffer)[:capacity]
            if self._frame is not None:
                frame[: self._filled] = self._frame[: self._filled]
            self._return_frame_buffer()
            self._frame, self._frame_buffer = frame, buffer
            if waits and self._unmute is None:
                self._transport.resume_reading()

        self._unreserve = self._host.budget.reserve(capacity - self._reserved_read, granted, frame=self)
        if self._unreserve is not None:
            waits = True
            self._transport.pause_reading()

    # quotas

    def mute(self, wait_ms: int) -> None:
        """Read nothing and execute nothing for so long; answers go out (KIP-219)."""
        until = self._host.now_ms() + wait_ms
        if self._closed or self._draining:
            return
        if self._unmute is not None:
            if until <= self._muted_until:
                return
            self._unmute()
        self._muted_until = until
        self._unmute = self._host.requests.broker.scheduler.after(wait_ms, self._unmuted)
        self._transport.pause_reading()

    def _unmuted(self) -> None:
        self._unmute = None
        if self._backlog is None and self._unreserve is None and not self._ended and not self._draining:
            self._transport.resume_reading()
        self._advance()

    def _wait_for_turn(self, rates: ConnectionRates) -> None:
        """New connections come faster than they may: this one waits, and may have to go then."""
        wait_ms, stays = rates.arrive(self.listener, self.peer_host, self.last_active)
        if wait_ms:
            self.mute(wait_ms)
        if not stays:
            if self._unmute is None:
                self.abort()
                return
            self._unmute()
            self._unmute = self._host.requests.broker.scheduler.after(wait_ms, self.abort)

    # executing

    def _execute(self, frame: memoryview, came: float, started: float) -> float:
        """``came``: when its last byte did. Returns when it ended."""
        try:
            answer = self._session.execute(frame, self.last_active)
        except BadRequest as refusal:
            self._traffic.malformed += 1
            self._refuse(str(refusal), refusal)
            return started
        except Exception:
            self._unanswerable()
            return started
        if type(answer) is not list:
            deferred = cast("Deferred", answer)
            timed = _Timed(frame, came, started)
            self._await(deferred, timed)
            return timed.executed
        if self._slots:
            self._slots.append(_Slot(None, answer))
            sent = sum(map(len, answer))
        else:
            sent = self._send(answer)
        now = perf_counter()
        if len(frame) > 1:  # what comes before a login may be shorter
            traffic = self._traffic
            traffic.by_key[frame[1]].answered(now - came, len(frame), sent)
            if now - came > traffic.slow_seconds:
                traffic.tell_slow(frame, self._who(), started - came, now - started, 0, 0)
        return now

    def _execute_run(self, view: memoryview, came: float) -> int:
        """Execute the first requests together if they allow it; how many bytes they had."""
        if self._slots or len(view) > self._session.max_request_bytes:
            return 0
        try:
            run = self._session.execute_run(view, self.last_active)
        except Exception:
            self._unanswerable()
            return len(view)
        if run.requests:
            self._out.append(run.answers)
            self._out_bytes += len(run.answers)
            self._traffic.by_key[view[_API_KEY]].answered_together(
                run.requests, perf_counter() - came, run.size_bytes, len(run.answers)
            )
        return run.size_bytes

    def _unanswerable(self) -> None:
        logger.exception(
            "closing %s:%s: its request could not be answered",
            self.peer_host,
            self.peer_port,
            extra=self._who(),
        )
        self.close()

    def _who(self) -> dict[str, Any]:
        """For the log."""
        return {"connection": self.number, "peer": self.peer_host}

    def _await(self, deferred: Deferred, timed: _Timed) -> None:
        slot = _Slot(deferred, None, timed)
        self._slots.append(slot)
        if not deferred.may_overlap:
            self._blocking = slot
        deferred.answer.then(lambda _: self._settled(slot, deferred))

    def _settled(self, slot: _Slot, deferred: Deferred) -> None:
        if self._closed:
            return
        timed = slot.timed
        if timed is not None and not timed.settled:
            timed.settled = perf_counter()
            timed.long_poll = deferred.waits_for_others
        try:
            framed = deferred.framed()
        except BadRequest as refusal:
            self._refuse(str(refusal), refusal)
            return
        except Exception:  # whoever settled this one has others to settle
            self._unanswerable()
            return
        if isinstance(framed, Deferred):
            slot.deferred = framed
            framed.answer.then(lambda _: self._settled(slot, framed))
            return
        slot.frame = framed
        if timed is not None:
            self._answered(timed, framed)
        if self._blocking is slot:
            self._blocking = None
        while self._slots and self._slots[0].frame is not None:
            self._send(self._slots.popleft().frame or [])
        if not self._receiving:
            self._advance()

    def _answered(self, timed: _Timed, answer: Buffers) -> None:
        """A request that had to wait."""
        now = perf_counter()
        waited = 0.0 if timed.long_poll else timed.settled - timed.executed
        seconds = timed.executed - timed.came + waited + now - timed.settled
        traffic = self._traffic
        if timed.size > 1:
            traffic.by_key[timed.head[1]].answered(seconds, timed.size, sum(map(len, answer)))
        if seconds > traffic.slow_seconds:
            traffic.tell_slow(
                timed.head,
                self._who(),
                timed.started - timed.came,
                timed.executed - timed.started,
                waited,
                now - timed.settled,
            )

    def _advance(self) -> None:
        """Something is done: answer, and go on with what had to wait."""
        self._flush()
        if self._draining:
            self._close_if_drained()
        elif self._ready and not self._closed and (backlog := self._take_backlog()) is not None:
            self._receive(memoryview(backlog))
            if self._backlog is None and self._unreserve is None and not self._closed and not self._ended:
                self._transport.resume_reading()
        if self._ended and self._ended_for_good and not self._closed:
            self.close()

    # answering

    def _send(self, frame: Buffers) -> int:
        """Small answers to requests that came together leave together. Returns how many bytes it has."""
        size = sum(map(len, frame))
        self._out += frame
        self._out_bytes += size
        if self._out_bytes >= _FLUSH_BYTES:
            self._flush()
        return size

    def _flush(self) -> None:
        if self._out and not self._closed:
            out, self._out = self._out, []
            self._out_bytes = 0
            self._outgoing.write(out)
            if self._outgoing.paused:  # all of what it was given is held until it has gone out
                size = sum(len(part) for part in out if not isinstance(part, FileRange))
                self._reserved_write += size
                self._host.budget.take(size)

    def _refuse(self, reason: str, refusal: BadRequest | None = None) -> None:
        """Close for good: what came cannot be answered, or with a last answer only."""
        level = logging.DEBUG if refusal is not None and refusal.quiet else logging.WARNING
        logger.log(level, "closing %s:%s: %s", self.peer_host, self.peer_port, reason, extra=self._who())
        if refusal is not None:
            self._out += refusal.last
        self._flush()
        self.close()

    def _return_frame_buffer(self) -> None:
        if self._frame_buffer is not None:
            self._host.frame_buffers.give_back(self._frame_buffer)
            self._frame_buffer = None

    def _release_read(self) -> None:
        self._return_frame_buffer()
        self._host.budget.frame_ended(self)
        if self._reserved_read:
            size, self._reserved_read = self._reserved_read, 0
            self._host.budget.give_back(size)

    def _release_write(self) -> None:
        if self._reserved_write:
            self._host.budget.give_back(self._reserved_write)
            self._reserved_write = 0

    def _close_if_drained(self) -> None:
        if not self._slots and not self._closed:
            self.close()

    def _drained(self) -> None:
        if self._on_drained is not None:
            callback, self._on_drained = self._on_drained, None
            callback()


def _address(name: Any) -> tuple[str, int]:
    """Host and port of a socket name; IPv4 in IPv6 clothes is unwrapped."""
    if not name:  # the peer was gone before we could ask
        return "?", 0
    host, port = name[0], name[1]
    return host.removeprefix("::ffff:") if "." in host else host, port


def _bad_size(prefix: memoryview, size: int) -> str:
    start = bytes(prefix)
    if start in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC", b"CONN"):
        return "this is an HTTP request; the port speaks Kafka's protocol"
    if start[0] == 0x16 and start[1] == 0x03:
        return "this is a TLS handshake; the listener is plaintext (security.protocol=PLAINTEXT)"
    return f"a frame claims {size} bytes"
