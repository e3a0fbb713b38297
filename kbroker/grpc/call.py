"""One call: the messages that come and go, its deadline, who made it, and how it ends.

Invariants:
- What has come and was not taken is bounded by the window of its stream and by the largest message, and
  counts in the budget until the next message is asked for.
- Nothing is sent that the client has no window for, nor while its connection takes nothing.
- It ends once: with a status, or without one when nobody is there to be told.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kbroker.grpc.framing import GZIP, IDENTITY, Frame, Frames, decompressed, framed
from kbroker.grpc.statuses import GrpcError, Status
from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.authentication.credentials import Identity
    from kbroker.broker import Broker
    from kbroker.grpc.connection import GrpcConnection
    from kbroker.grpc.speaking import GrpcSpeaker
    from kbroker.grpc.table import Method
    from kbroker.http.quotas import HttpQuotas, Usage
    from kbroker.http.request import HttpCaller
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

_UNITS_MS: Final = {"H": 3_600_000.0, "M": 60_000.0, "S": 1000.0, "m": 1.0, "u": 0.001, "n": 0.000_001}
_TIMEOUT: Final = re.compile("([0-9]{1,8})([HMSmun])")
_LONGEST_TIMER_MS: Final = 7 * 86_400_000.0
_AT_ONCE_BYTES: Final = 32 * 1024  # that the loop compresses or decompresses itself


class Call:
    def __init__(
        self,
        speaker: GrpcSpeaker,
        stream_id: int,
        headers: dict[str, str],
        request_id: str,
        quotas: HttpQuotas,
        max_bytes: int,
    ) -> None:
        self.stream_id = stream_id
        self.headers = headers
        """By names that are written small."""
        self.path = headers.get(":path", "")
        self.request_id = request_id
        self.connection: GrpcConnection = speaker.connection
        self.broker: Broker = speaker.broker
        self.caller: HttpCaller = None  # type: ignore[assignment]  # set once it is known
        self.identity: Identity | None = None
        self.method: Method = None  # type: ignore[assignment]  # the same
        self.quota: str | None = None
        self.task: asyncio.Task[None] | None = None
        self.over = False
        """Whether it has ended."""
        self.failure: GrpcError | None = None
        """Why it was ended from outside."""
        self.resting = False
        """Whether nothing is under way that a stop should wait for."""
        self._speaker = speaker
        self._quotas = quotas
        self._usage: Usage | None = None
        self._resources: Resources | None = None
        self._max_bytes = max_bytes
        self._frames = Frames(max_bytes)
        self._arrived: deque[Frame] = deque()
        self._half_closed = False
        self._held = 0
        self._in_hand = 0  # of it, what the message that was taken last has
        self._changed = asyncio.Event()
        self._answering = False
        self._deadline: asyncio.TimerHandle | None = None
        self._compresses = False

    # the connection's side

    @property
    def half_closed(self) -> bool:
        """Whether the client has said all."""
        return self._half_closed

    @property
    def has_unread(self) -> bool:
        """Whether messages have come that were not asked for."""
        return bool(self._arrived)

    def received(self, data: bytes) -> int:
        """Returns how many messages end with this."""
        if self.over or self.failure is not None:
            return 0
        self.hold(len(data))
        frames: list[Frame] = []
        try:
            frames = self._frames.add(data)
            self._arrived.extend(frames)
        except GrpcError as error:
            self.fail(error)
        self.change()
        return len(frames)

    def ended(self) -> None:
        """The client has said all."""
        self._half_closed = True
        self.change()

    def change(self) -> None:
        """Something is new for who waits: a message, room in a window, the end of the server."""
        self._changed.set()

    def fail(self, error: GrpcError) -> None:
        """End it from outside."""
        if self.failure is None and not self.over:
            self.failure = error
            if self.task is not None:
                self.task.cancel()

    def stop(self) -> None:
        """The server stops: what has no end of its own ends."""
        if self.resting:
            self.fail(stopped())
        self.change()

    def lost(self) -> None:
        """Nobody is there to be answered."""
        if not self.over:
            self.over = True
            if self.task is not None:
                self.task.cancel()

    def begin_deadline(self) -> None:
        """Raises GrpcError for one that cannot be read."""
        text = self.headers.get("grpc-timeout")
        if text is None:
            return
        match = _TIMEOUT.fullmatch(text)
        if match is None:
            raise GrpcError(Status.INVALID_ARGUMENT, f"grpc-timeout cannot be {text[:20]!r}.")
        ms = min(int(match[1]) * _UNITS_MS[match[2]], _LONGEST_TIMER_MS)
        over = GrpcError(Status.DEADLINE_EXCEEDED, "The deadline of the call is over.")
        self._deadline = asyncio.get_running_loop().call_later(ms / 1000, self.fail, over)

    # what it may do

    @property
    def resources(self) -> Resources:
        if self._resources is None:
            self._resources = self.broker.resources(self.caller)
        return self._resources

    @property
    def now_ms(self) -> int:
        return self.broker.clock()

    @property
    def usage(self) -> Usage | None:
        """What it uses of the quotas of its caller; None: there are none."""
        throttling = self.broker.throttling
        if throttling is None:
            return None
        if self._usage is None:
            from kbroker.http.quotas import Usage  # with the first quota

            self._usage = Usage(self._quotas, throttling, self)
        return None if self._usage.limits is None else self._usage

    async def in_turns(self, steps: Steps[Any]) -> Any:
        """What the steps return; others have their turns in between."""
        usage = self.usage
        if usage is not None and usage.times:
            from kbroker.http.quotas import timed

            steps = timed(steps, usage)
        return await settled(self.broker.long_requests.run(steps))

    async def settled(self, result: Any) -> Any:
        return await settled(result)

    # what comes

    async def receive(self, *, rests: bool = True) -> Any:
        """The next message; None: the client has said all. Raises GrpcError.

        ``rests``: while it waits, the call does nothing else.
        """
        self._let_go(self._in_hand)
        self._in_hand = 0
        deadline: float | None = None
        while not self._arrived:
            self._speaker.read_on(self)
            if self._half_closed:
                if self._frames.begun:
                    raise GrpcError(Status.INTERNAL, "The call ends in the middle of a message.")
                return None
            if self.stopping and rests and self.method.client_streaming and not self._frames.begun:
                raise stopped()
            if rests:
                self.resting = self.method.client_streaming
            try:
                deadline = await self._until_more_comes(deadline)
            finally:
                if rests:
                    self.resting = False
        frame = self._arrived.popleft()
        self._in_hand = len(frame.data)
        self._speaker.read_on(self)
        return await self._parsed(frame)

    async def only(self) -> Any:
        """The message of a call that has one."""
        message = await self.receive()
        if message is None:
            raise GrpcError(Status.INTERNAL, "The call has no message.")
        return message

    async def _until_more_comes(self, deadline: float | None) -> float | None:
        """What was begun, and the message of a call that has one, comes in time. Returns until when."""
        self._changed.clear()
        if self.method.client_streaming and not self._frames.begun:
            await self._changed.wait()
            return None
        timeout_ms: int = self.broker.settings["kbroker.http.request.timeout.ms"]
        if deadline is None:
            deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            raise GrpcError(
                Status.DEADLINE_EXCEEDED,
                f"The message did not come within {timeout_ms} ms (kbroker.http.request.timeout.ms).",
            ) from None
        return deadline

    async def _parsed(self, frame: Frame) -> Any:
        data = frame.data
        if frame.compressed:
            if self.headers.get("grpc-encoding", IDENTITY) != GZIP:
                raise GrpcError(
                    Status.UNIMPLEMENTED, "Messages may be compressed with gzip, and the headers say it."
                )
            if len(data) <= _AT_ONCE_BYTES // 8:
                data = decompressed(data, self._max_bytes)
            else:
                data = await settled(self.broker.worker.run(partial(decompressed, data, self._max_bytes)))
            self.hold(len(data))
            self._in_hand += len(data)
        if self.quota is not None:
            await self._produced(len(data))
        try:
            return self.method.request.FromString(data)
        except Exception:  # protobuf has its own
            raise GrpcError(
                Status.INVALID_ARGUMENT, f"The message is no {self.method.request.DESCRIPTOR.full_name}."
            ) from None

    async def _produced(self, size: int) -> None:
        from kbroker.quotas.entities import PRODUCER_BYTE_RATE

        usage = self.usage
        if usage is not None and self.quota == PRODUCER_BYTE_RATE:
            usage.produced(size)
            if self.method.client_streaming:
                await usage.pace(PRODUCER_BYTE_RATE)

    # what goes

    async def send(self, message: Any) -> None:
        """Returns once there was room for it in the client's window."""
        data = message.SerializeToString()
        del message  # it may be large, and the client slow
        compress = self._compresses
        if compress and len(data) > _AT_ONCE_BYTES:
            data = await settled(self.broker.worker.run(partial(framed, data, compress=True)))
        else:
            data = framed(data, compress=compress)
        self.begin_answer()
        size = len(data)
        self.hold(size)
        try:
            await self._speaker.send(self, data)
        finally:
            self.let_go(size)
        if self.quota is not None:
            await self._consumed(size)

    async def _consumed(self, size: int) -> None:
        from kbroker.quotas.entities import CONSUMER_BYTE_RATE

        usage = self.usage
        if usage is not None and self.quota == CONSUMER_BYTE_RATE:
            usage.consumed(size)
            if self.method.server_streaming:
                await usage.pace(CONSUMER_BYTE_RATE)

    def begin_answer(self) -> None:
        """Its headers; once."""
        if self._answering:
            return
        self._answering = True
        accepted = self.headers.get("grpc-accept-encoding", "")
        self._compresses = GZIP in accepted and self.headers.get("grpc-encoding") == GZIP
        headers = [
            (":status", "200"),
            ("content-type", "application/grpc"),
            ("x-request-id", self.request_id),
        ]
        headers.append(("grpc-accept-encoding", "identity,gzip"))
        if self._compresses:
            headers.append(("grpc-encoding", GZIP))
        self._speaker.send_headers(self, headers)

    async def until_changed(self, seconds: float) -> bool:
        """Whether something has changed before the time was over."""
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    @property
    def stopping(self) -> bool:
        """Whether the server stops: what has no end of its own ends now."""
        return self.connection.stopping

    # its end

    def end(self, error: GrpcError | None) -> None:
        """With the status of the error, or OK."""
        if not self.over:
            self.over = True
            status = Status.OK if error is None else error.status
            trailers = [("grpc-status", str(int(status)))]
            if error is not None:
                trailers += error.trailers()
            if not self._answering:
                trailers = [
                    (":status", "200"),
                    ("content-type", "application/grpc"),
                    ("x-request-id", self.request_id),
                    *trailers,
                ]
            self._speaker.send_trailers(self, trailers)

    def release(self) -> None:
        """Nothing of it is held any more."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._usage is not None:
            self._usage.ended()
        self._arrived.clear()
        self._let_go(self._held)

    def hold(self, size: int) -> None:
        """So many bytes more are kept for it."""
        self._held += size
        self.connection.hold(size)

    def let_go(self, size: int) -> None:
        self._let_go(size)

    def _let_go(self, size: int) -> None:
        size = min(size, self._held)
        if size:
            self._held -= size
            self.connection.hold(-size)


def stopped() -> GrpcError:
    return GrpcError(Status.UNAVAILABLE, "The broker stops: call again, and go on where this call has ended.")
