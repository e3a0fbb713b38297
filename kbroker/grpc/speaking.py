"""HTTP/2 on one connection, as gRPC uses it: h2 knows the protocol, calls are served side by side.

Invariants:
- What comes is parsed a little at a time, so that others have their turn.
- A peer is given window as what it sent is taken, and none while the budget is tight.
- Who floods us with what costs work and brings nothing is told to calm down, and closed (floods.py); who does
  not take what we have to answer is not read.
- After a GOAWAY of ours calls that are under way end in their time, and none begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Final

from h2 import events
from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame

from kbroker.grpc.call import Call
from kbroker.grpc.floods import FRAME, RESET, Patience
from kbroker.grpc.statuses import GrpcError, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbroker.broker import Broker
    from kbroker.grpc.application import Application
    from kbroker.grpc.connection import GrpcConnection
    from kbroker.http.problems import Problem

logger = logging.getLogger("kbroker.grpc")
for _name in ("h2", "hpack", "hyperframe"):  # at level debug they tell what came: credentials, too
    logging.getLogger(_name).setLevel(logging.WARNING)

_PARSED_AT_ONCE: Final = 16 * 1024  # bytes
_TURN_SECONDS: Final = 0.002
_STREAM_WINDOW: Final = 256 * 1024
_CONNECTION_WINDOW: Final = 1024 * 1024
_WRITTEN_AT_ONCE: Final = 64 * 1024
_MOST_UNSENT: Final = 256 * 1024  # before nothing more is read
_UNHANDLED: Final = 2  # times the streams: calls whose client has gone, and that have not ended yet
_FIRST_WINDOW: Final = 65_535


_CONFIGURATION: Final = H2Configuration(
    client_side=False,
    header_encoding=None,
    # What we send is right: names are ours, and call.py lets no other bytes into values.
    normalize_outbound_headers=False,
    validate_outbound_headers=False,
)


class GrpcSpeaker:
    """One connection, from its accept on."""

    def __init__(self, application: Application, connection: GrpcConnection) -> None:
        self.connection = connection
        self.broker: Broker = application.broker
        self._application = application
        settings = self.broker.settings
        self._max_streams: int = settings["kbroker.grpc.max.streams"]
        self._max_header_bytes: int = settings["kbroker.http.max.header.bytes"]
        self._h2 = H2Connection(_CONFIGURATION)
        self._h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: self._max_streams,
                SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: self._max_header_bytes,
            },
        )
        self._h2.decoder.max_header_list_size = self._max_header_bytes
        self._patience = Patience(connection.last_active)
        self._calls: dict[int, Call] = {}
        self._serving: set[Call] = set()
        self._received = bytearray()
        self._reading = True
        self._going_on = False
        self._flushing = False
        self._over = False
        self._draining = False
        self._writable: asyncio.Event | None = None  # None: it is
        self._last_stream = 0
        self._unwritten = 0  # bytes of data that are not flushed
        self._owed: dict[int, int] = {}  # window of streams that was used and not given back
        self._owed_connection = 0
        self._withdraw: Callable[[], None] | None = None
        self._giving = False
        self.pinged_ms: int | None = None
        """Since when it is waited for an answer to a ping."""

    # the connection's side

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW - _FIRST_WINDOW)
        # Sent with the first answer: the client speaks first, and within TLS only after the handshake.

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self.pinged_ms = None
        self._received += data
        if not self._going_on:
            self._go_on()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._over = True
        if self._withdraw is not None:
            self._withdraw()
            self._withdraw = None
        self._lose_all()
        self.resume_writing()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None
        if not self._over and not self._reading and not self._received:
            self._read(reading=True)

    @property
    def awaits_more(self) -> bool:
        """It may be idle as long as it answers pings."""
        return True

    @property
    def calls(self) -> int:
        return len(self._calls)

    def shutdown(self) -> None:
        """Begin no more calls, end those under way, then close."""
        if self._draining or self._over:
            return
        self._draining = True
        self.flush()
        # Not by h2, which takes it for the end of all: what is under way ends in its time.
        self.connection.write(GoAwayFrame(0, last_stream_id=self._last_stream).serialize())
        for call in list(self._calls.values()):
            call.stop()
        self._end_if_drained()

    def refuse(self, problem: Problem) -> None:
        self.close(ErrorCodes.ENHANCE_YOUR_CALM, problem.detail)

    def close(self, code: ErrorCodes, reason: str) -> None:
        """At once, with all its calls."""
        if self._over:
            return
        logger.warning("closing %s: %s", self.connection.peer_host, reason)
        if self._is_open():
            self._h2.close_connection(code, reason.encode()[:200])
        self.flush()
        self._over = True
        self.connection.answered_early = True
        self.connection.close()
        self._lose_all()

    def _lose_all(self) -> None:
        for call in list(self._calls.values()):
            call.lost()
        self._calls.clear()

    def ping(self, now_ms: int) -> None:
        if not self._over and self._is_open():
            self.pinged_ms = now_ms
            self._h2.ping(b"kbroker?")
            self.flush()

    # what comes

    def _go_on(self) -> None:
        """With what has come, for a while."""
        self._going_on = False
        end = perf_counter() + _TURN_SECONDS
        while self._received and not self._over and not self._crowded:
            part = bytes(self._received[:_PARSED_AT_ONCE])
            del self._received[:_PARSED_AT_ONCE]
            self._parse(part)
            if perf_counter() > end:
                break
        if self._over:
            self._received.clear()
            return
        if self._received and not self._crowded:
            self._going_on = True
            asyncio.get_running_loop().call_soon(self._go_on)
        self._flush_soon()
        unsent = self.connection.get_write_buffer_size()
        self._read(reading=not self._received and unsent <= _MOST_UNSENT)

    @property
    def _crowded(self) -> bool:
        """Whether calls are taken back faster than they end: those that follow wait."""
        return len(self._serving) >= _UNHANDLED * self._max_streams

    def _read(self, *, reading: bool) -> None:
        if reading != self._reading:
            self._reading = reading
            if reading:
                self.connection.resume_reading()
            else:
                self.connection.pause_reading()

    def _parse(self, data: bytes) -> None:
        try:
            for event in self._h2.receive_data(data):
                if self._over:
                    return
                self._happened(event)
        except H2Error as error:
            self._broken(f"it does not speak HTTP/2 as it should: {type(error).__name__}: {error}")
            return
        except Exception:  # h2 must not end anything but this connection
            logger.exception("frames of %s could not be read", self.connection.peer_host)
            self._broken("its frames could not be read")
            return
        self._look_at_head()

    def _look_at_head(self) -> None:
        """h2 keeps a head in parts until it ends: longer, and larger, than we want it to."""
        parts = getattr(self._h2.incoming_buffer, "_headers_buffer", ())
        if not parts:
            self.connection.head_since = None
        elif sum(len(each.data) for each in parts) > self._max_header_bytes:
            self.close(ErrorCodes.ENHANCE_YOUR_CALM, "the head of a call is too long")
        elif self.connection.head_since is None:
            self.connection.head_since = self.connection.last_active

    def _broken(self, reason: str) -> None:
        """h2 has its GOAWAY ready."""
        logger.warning("closing %s: %s", self.connection.peer_host, reason)
        self.flush()
        self._over = True
        self.connection.answered_early = True
        self.connection.close()
        self._lose_all()

    def _happened(self, event: events.Event) -> None:
        if isinstance(event, events.DataReceived):
            self._data(event)
        elif isinstance(event, events.RequestReceived):
            self._request(event)
        elif isinstance(event, events.StreamEnded):
            call = self._calls.get(event.stream_id)
            if call is not None:
                call.ended()
        elif isinstance(event, events.WindowUpdated):
            self._spend(FRAME)
            self._window_opened(event.stream_id)
        elif isinstance(event, events.RemoteSettingsChanged):
            self._spend(FRAME)
            self._window_opened(0)
        elif isinstance(event, events.StreamReset):
            self._spend(RESET)
            call = self._calls.pop(event.stream_id, None)
            self._owed.pop(event.stream_id, None)
            if call is not None:
                call.lost()
                self._settle()
        elif isinstance(event, events.ConnectionTerminated):
            self._lose_all()
            self._draining = True
            self._end_if_drained()
        elif isinstance(event, (events.PingReceived, events.PriorityUpdated, events.UnknownFrameReceived)):
            self._spend(FRAME)

    def _spend(self, cost: int) -> None:
        if not self._patience.spend(cost, self.connection.last_active):
            self.close(ErrorCodes.ENHANCE_YOUR_CALM, "it floods us with frames that bring nothing")

    def _request(self, event: events.RequestReceived) -> None:
        stream_id = self._last_stream = event.stream_id
        headers: dict[str, str] = {}
        for name, value in event.headers:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        if self._draining:
            self._reset(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        if headers[":method"] != "POST" or not headers.get("content-type", "").startswith("application/grpc"):
            status = "405" if headers[":method"] != "POST" else "415"
            self._h2.send_headers(stream_id, [(":status", status)], end_stream=True)
            self._reset(stream_id, ErrorCodes.NO_ERROR)
            return
        call = self._calls[stream_id] = self._application.call(self, stream_id, headers)
        self._serving.add(call)
        self.connection.busy = True
        call.task = asyncio.get_running_loop().create_task(self._application.serve(call))
        call.task.add_done_callback(lambda _: self._served(call))

    def _served(self, call: Call) -> None:
        call.end(call.failure)  # of one that was ended before it began
        call.release()
        self._serving.discard(call)
        if self._calls.get(call.stream_id) is call:
            del self._calls[call.stream_id]
        self._owed.pop(call.stream_id, None)
        self._settle()
        if self._received and not self._going_on and not self._over:
            self._going_on = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _settle(self) -> None:
        if not self._calls:
            self.connection.busy = False
        self._end_if_drained()

    def _end_if_drained(self) -> None:
        if self._draining and not self._calls and not self._over:
            self.flush()
            self._over = True
            self.connection.close()

    def _data(self, event: events.DataReceived) -> None:
        stream_id, size = event.stream_id, event.flow_controlled_length
        data = event.data
        if data:
            self._patience.earn(len(data))
        elif event.stream_ended is None:
            self._spend(FRAME)
        self._owed_connection += size
        call = self._calls.get(stream_id)
        if call is not None:
            self._owed[stream_id] = self._owed.get(stream_id, 0) + size
            if call.received(bytes(data)):
                self._patience.earn_message()
            self._give_window(call)
        self._give_window_to_connection()

    def read_on(self, call: Call) -> None:
        """What had come of it was asked for."""
        self._give_window(call)

    def _give_window(self, call: Call) -> None:
        owed = self._owed_to(call)
        if not owed:
            return
        if self.broker.budget.tight:
            self._wait_for_room()
        else:
            self._give(call, owed)

    def _owed_to(self, call: Call) -> int:
        """How much window its stream may get back; 0: not enough, or not yet."""
        owed = self._owed.get(call.stream_id, 0)
        if owed < _STREAM_WINDOW // 4 or call.has_unread or call.over or call.half_closed or self._over:
            return 0
        return owed

    def _give(self, call: Call, owed: int) -> None:
        self._owed[call.stream_id] = 0
        self._increment(owed, call.stream_id)

    def _give_window_to_connection(self) -> None:
        owed = self._owed_connection
        if owed < _CONNECTION_WINDOW // 4 or self._over:
            return
        if self.broker.budget.tight:
            self._wait_for_room()
            return
        self._owed_connection = 0
        self._increment(owed, None)

    def _increment(self, size: int, stream_id: int | None) -> None:
        try:
            self._h2.increment_flow_control_window(size, stream_id)
        except (H2Error, KeyError):  # the stream has ended meanwhile
            return
        self._flush_soon()

    def _wait_for_room(self) -> None:
        """While the budget is tight window is given a little at a time, and none that it has no room for."""
        if self._withdraw is not None or self._giving:
            return
        budget = self.broker.budget

        def granted() -> None:
            self._withdraw = None
            self._giving = True
            budget.give_back(_STREAM_WINDOW)
            asyncio.get_running_loop().call_soon(self._give_some)

        withdraw = budget.reserve(_STREAM_WINDOW, granted)
        if withdraw is not None:
            self._withdraw = withdraw

    def _give_some(self) -> None:
        """The oldest calls first, so that one of them gets to its end."""
        self._giving = False
        if self._over:
            return
        owed, self._owed_connection = self._owed_connection, 0
        if owed:
            self._increment(owed, None)
        left = _STREAM_WINDOW
        for call in list(self._calls.values()):
            owed = self._owed_to(call)
            if owed and left <= 0:
                self._wait_for_room()
                return
            if owed:
                self._give(call, owed)
                left -= owed

    def _window_opened(self, stream_id: int | None) -> None:
        if stream_id:
            call = self._calls.get(stream_id)
            if call is not None:
                call.change()
            return
        for call in self._calls.values():
            call.change()

    # what goes

    def send_headers(self, call: Call, headers: list[tuple[str, str]]) -> None:
        if self._takes(call):
            self._h2.send_headers(call.stream_id, headers)
            self._flush_soon()

    async def send(self, call: Call, data: bytes) -> None:
        """As fast as the client's window lets it go. Raises GrpcError when it does not for too long."""
        view = memoryview(data)
        stream_id = call.stream_id
        timeout_ms: int = self.broker.settings["kbroker.grpc.stream.timeout.ms"]
        clock = asyncio.get_running_loop().time
        moved = clock()
        while view:
            if not self._takes(call):
                raise asyncio.CancelledError
            if self._writable is not None:
                await self._until_writable(timeout_ms)
                moved = clock()
                continue
            size = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
            if size <= 0:
                left = moved + timeout_ms / 1000 - clock()
                if left <= 0 or not await call.until_changed(left):
                    raise GrpcError(
                        Status.UNAVAILABLE,
                        f"The client took nothing for {timeout_ms} ms (kbroker.grpc.stream.timeout.ms).",
                    )
                continue
            part = view[:size]
            self._h2.send_data(stream_id, part)
            self._patience.earn(len(part))
            view = view[size:]
            moved = clock()
            self._unwritten += len(part)
            if self._unwritten >= _WRITTEN_AT_ONCE:
                self.flush()
            else:
                self._flush_soon()
        self._patience.earn_message()

    async def _until_writable(self, timeout_ms: int) -> None:
        """The connection takes more; one that takes nothing for too long is closed."""
        writable, left = self._writable, self.connection.get_write_buffer_size()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if writable is not None:
                    await writable.wait()
        except TimeoutError:
            if self._writable is writable and self.connection.get_write_buffer_size() >= left:
                self.connection.give_up(f"it took nothing of a call for {timeout_ms} ms")

    def send_trailers(self, call: Call, trailers: list[tuple[str, str]]) -> None:
        """Its end."""
        if not self._takes(call, ending=True):
            return
        try:
            self._h2.send_headers(call.stream_id, trailers, end_stream=True)
        except H2Error as error:
            logger.debug("%s: the end of a call could not be told: %s", self.connection.peer_host, error)
        if not call.half_closed:
            self._reset(call.stream_id, ErrorCodes.NO_ERROR)
        self._flush_soon()

    def _reset(self, stream_id: int, code: ErrorCodes) -> None:
        """Of a client that may still be sending."""
        with contextlib.suppress(H2Error):  # it had said all
            self._h2.reset_stream(stream_id, code)

    def _takes(self, call: Call, *, ending: bool = False) -> bool:
        """Whether there is somebody who could take it."""
        return not self._over and (ending or not call.over) and self._calls.get(call.stream_id) is call

    def _is_open(self) -> bool:
        return self._h2.state_machine.state is not ConnectionState.CLOSED

    def _flush_soon(self) -> None:
        """With what else is sent in this turn."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self.flush()

    def flush(self) -> None:
        if self._over:
            return
        self._unwritten = 0
        data = self._h2.data_to_send()
        if data:
            self.connection.write(data)
