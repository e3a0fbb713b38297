"""The request session of a connection: from a frame to the frame that answers it.

All requests go through here, those that lanes answer without decoding them as well: what must hold for every
request is applied in `Session.execute` and `Session.execute_run`, by the gate, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kbroker.pending import Pending, mapped
from kbroker.requests.answers import Buffers, Deferred, framed, held
from kbroker.requests.context import Peer
from kbroker.requests.gate import head_of
from kbroker.requests.lanes import NO_RUN, Lanes, Run
from kbroker.requests.long_request import LongRequest
from kbroker.requests.long_requests import at_once
from kbroker.requests.request import Request, parse, parse_in_steps
from kbroker.requests.throttled import Stopwatch, begin, run

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker
    from kbroker.protocol.errors import ErrorCode
    from kbroker.quotas.throttling import ClientLimits, RequestThrottle, Throttling
    from kbroker.requests.gate import Gate, Verdict
    from kbroker.security.principal import Principal

_LONG_FRAME_BYTES = 4 * 1024  # from here on a request may take long to decode
_LENGTH_BYTES = 4
_CLIENT_ID = 8  # where its length stands in a request
_NO_CLIENT_ID = b"\xff\xff"


class Requests:
    """The request layer of a broker: what all sessions share."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.gate: Gate | None = None
        self.max_request_bytes: int = broker.settings["socket.request.max.bytes"]
        self.logins: Mapping[str, ListenerLogins] = {}  # of the listeners that ask who comes
        self._with_lanes: set[Session] = set()  # whose lanes end when the authorizer's mind changes
        if broker.authorizer is not None:
            broker.authorizer.acls.on_change(self._end_lanes)

    def session(
        self, listener: str, local_address: tuple[str, int], peer_address: tuple[str, int]
    ) -> Session:
        """That of a new connection."""
        logins = self.logins.get(listener)
        if logins is None:
            return Session(self, listener, local_address, peer_address)
        from kbroker.requests.sasl_session import SaslSession

        return SaslSession(self, logins, local_address, peer_address)

    def lanes_begin(self, session: Session) -> None:
        """It remembers requests that were allowed."""
        if self.broker.authorizer is not None:
            self._with_lanes.add(session)

    def session_ends(self, session: Session) -> None:
        self._with_lanes.discard(session)

    def _end_lanes(self) -> None:
        for session in self._with_lanes:
            session.end_lanes()
        self._with_lanes.clear()


class Session(Peer):
    __slots__ = ("_lanes", "_limits", "_limits_of", "_requests", "max_request_bytes", "mute", "part")

    authenticated = True

    def __init__(
        self, requests: Requests, listener: str, local_address: tuple[str, int], peer_address: tuple[str, int]
    ) -> None:
        super().__init__(listener, local_address, peer_address)
        self._requests = requests
        self.max_request_bytes = requests.max_request_bytes
        self._lanes: dict[int, Lanes] | None = None  # by API key
        self._limits: ClientLimits | None = None
        self._limits_of: tuple[int, Principal, bytes] | None = None  # quotas, user and client id as they were
        self.mute: Callable[[int], None] | None = None
        """Lets the connection take no more requests for so many milliseconds."""
        self.part: Callable[[], None] | None = None
        """Lets the connection close, once what it executes is answered."""

    def execute(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        """The answer to one request. The frame may be used up to the return of this call only.

        Raises BadRequest if there can be no answer.
        """
        gate = self._requests.gate
        if gate is not None and (head := head_of(frame)) is not None:
            verdict = gate.judge(head)
            if verdict is not None:
                return self._judged(frame, verdict, now_ms)
        return self._pass(frame, now_ms)

    def execute_run(self, view: memoryview, now_ms: int) -> Run:
        """The answers to the first requests of ``view``, if they can be executed together.

        ``view`` begins with the length of a whole request. NO_RUN: nothing happened, take the first alone.
        """
        if self._lanes is None or len(view) < _LENGTH_BYTES + 2:
            return NO_RUN
        lanes = self._lanes.get(view[_LENGTH_BYTES + 1])
        if lanes is None:
            return NO_RUN
        throttling = self._requests.broker.throttling
        if throttling is not None and self._limits_for(view[_LENGTH_BYTES:], throttling) is not None:
            return NO_RUN
        gate = self._requests.gate
        if gate is None:
            return lanes.take_run(view, now_ms)
        if not gate.is_open:
            return NO_RUN
        run = lanes.take_run(view, now_ms)
        if run.requests and (head := head_of(view[_LENGTH_BYTES:])) is not None:
            gate.passed(head, run.requests)
        return run

    def end(self) -> None:
        """No more requests come."""
        self._lanes = None
        self._requests.session_ends(self)
        self.closed()

    def end_lanes(self) -> None:
        """What the caller was allowed may be refused now."""
        self._lanes = None

    def _pass(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        throttling = self._requests.broker.throttling
        if throttling is not None and (limits := self._limits_for(frame, throttling)) is not None:
            return self._pass_throttled(frame, now_ms, throttling, limits)
        lanes = None
        if self._lanes is not None and len(frame) > 1:
            # The low byte of the API key: there are no two APIs that share it, and a lane compares all of it.
            lanes = self._lanes.get(frame[1])
            if lanes is not None and (taken := lanes.take(frame, now_ms)) is not None:
                return taken
        if len(frame) < _LONG_FRAME_BYTES:
            request = parse(frame, self, now_ms)
        else:
            parsed = at_once(parse_in_steps(frame, self, now_ms))
            if parsed is None:
                return self._decode_in_turns(frame, now_ms)
            request = parsed
        broker = self._requests.broker
        answer = request.run(broker)
        if answer is None:
            return []
        if request.endpoint.lanes is not None:
            (lanes or self._new_lanes(request)).learn(frame, request, answer)
        if isinstance(answer, Pending):
            return Deferred(request, answer, broker)
        return framed(request, answer, broker)

    def _limits_for(self, frame: memoryview, throttling: Throttling) -> ClientLimits | None:
        """The quotas of the client that sent this; None: it has none."""
        end = _CLIENT_ID + 2
        client_id = bytes(frame[_CLIENT_ID:end])
        if len(client_id) == 2 and client_id != _NO_CLIENT_ID:
            client_id = bytes(frame[end : end + int.from_bytes(client_id)])
        else:
            client_id = b""
        limits_of = (throttling.generation, self.principal, client_id)
        if limits_of != self._limits_of:
            self._limits_of = limits_of
            self._limits = throttling.limits_of(self.principal.name, client_id.decode(errors="replace"))
        return self._limits

    def _pass_throttled(
        self, frame: memoryview, now_ms: int, throttling: Throttling, limits: ClientLimits
    ) -> Buffers | Deferred:
        """Of a client with quotas: what it uses is measured, and what is above its quotas is decoded."""
        from kbroker.quotas.throttling import RequestThrottle

        broker = self._requests.broker
        throttle = RequestThrottle(throttling, limits, len(frame), self.mute)
        watch = Stopwatch()
        lanes = None
        if self._lanes is not None and len(frame) > 1:
            lanes = self._lanes.get(frame[1])
            if lanes is not None and throttle.is_within(frame[1]):
                taken = lanes.take(frame, now_ms)
                if taken is not None:
                    throttle.taken(watch.seconds)
                    return taken
        request: Request | None
        if len(frame) < _LONG_FRAME_BYTES:
            request = parse(frame, self, now_ms)
        else:
            request = at_once(parse_in_steps(frame, self, now_ms))
            if request is None:
                return self._decode_in_turns(frame, now_ms, throttle)
        begin(request, throttle)
        throttle.seconds += watch.seconds
        answer = run(request, throttle, broker)
        if answer is None:
            return []
        if request.endpoint.lanes is not None:
            # The next one like it is another request, which uses its own.
            alike = request.answering(request.context.correlation_id)
            (lanes or self._new_lanes(request)).learn(frame, alike, answer)
        if isinstance(answer, Pending):
            return Deferred(request, answer, broker)
        return framed(request, answer, broker)

    def _decode_in_turns(
        self, frame: memoryview, now_ms: int, throttle: RequestThrottle | None = None
    ) -> Buffers | Deferred:
        broker = self._requests.broker
        request = LongRequest(memoryview(bytearray(frame)), self, now_ms, broker, throttle)
        answer = request.run()
        return Deferred(request, answer, broker) if isinstance(answer, Pending) else answer

    def _new_lanes(self, request: Request) -> Lanes:
        assert request.endpoint.lanes is not None
        if self._lanes is None:
            self._lanes = {}
            self._requests.lanes_begin(self)
        lanes = self._lanes[request.context.api_key] = request.endpoint.lanes(self._requests.broker)
        return lanes

    def _judged(self, frame: memoryview, verdict: Verdict, now_ms: int) -> Buffers | Deferred:
        broker = self._requests.broker

        def obey(kept: memoryview, now_ms: int) -> Buffers | Deferred:
            if verdict.error is None:
                return self._pass(kept, now_ms)
            return self._refused(kept, verdict.error, now_ms)

        if verdict.wait is None:
            return obey(frame, now_ms)
        request = parse(frame, self, now_ms)
        kept = memoryview(bytearray(frame))  # the frame dies when this returns
        later = mapped(verdict.wait, lambda _: obey(kept, broker.clock()))
        return held(request, later, broker) if isinstance(later, Pending) else later

    def _refused(self, frame: memoryview, error: ErrorCode, now_ms: int) -> Buffers | Deferred:
        request = parse(frame, self, now_ms)
        return framed(request, request.refused(error), self._requests.broker)
