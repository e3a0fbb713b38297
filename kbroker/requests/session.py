"""The request session of a connection: from a frame to the frame that answers it.

All requests go through here, those that lanes answer without decoding them as well: what must hold for every
request is applied in `Session.execute` and `Session.execute_run`, by the gate, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kbroker.pending import Pending, mapped
from kbroker.requests.answers import Buffers, Deferred, framed, held
from kbroker.requests.context import Peer
from kbroker.requests.gate import head_of
from kbroker.requests.lanes import NO_RUN, Lanes, Run
from kbroker.requests.long_request import LongRequest
from kbroker.requests.long_requests import at_once
from kbroker.requests.request import Request, parse, parse_in_steps

if TYPE_CHECKING:
    from kbroker.authentication.logins import ListenerLogins
    from kbroker.broker import Broker
    from kbroker.protocol.errors import ErrorCode
    from kbroker.requests.gate import Gate, Verdict

_LONG_FRAME_BYTES = 4 * 1024  # from here on a request may take long to decode
_LENGTH_BYTES = 4


class Requests:
    """The request layer of a broker: what all sessions share."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.gate: Gate | None = None
        self.max_request_bytes: int = broker.settings["socket.request.max.bytes"]
        self.logins: Mapping[str, ListenerLogins] = {}  # of the listeners that ask who comes

    def session(
        self, listener: str, local_address: tuple[str, int], peer_address: tuple[str, int]
    ) -> Session:
        """That of a new connection."""
        logins = self.logins.get(listener)
        if logins is None:
            return Session(self, listener, local_address, peer_address)
        from kbroker.requests.sasl_session import SaslSession

        return SaslSession(self, logins, local_address, peer_address)


class Session(Peer):
    __slots__ = ("_lanes", "_requests", "max_request_bytes")

    authenticated = True

    def __init__(
        self, requests: Requests, listener: str, local_address: tuple[str, int], peer_address: tuple[str, int]
    ) -> None:
        super().__init__(listener, local_address, peer_address)
        self._requests = requests
        self.max_request_bytes = requests.max_request_bytes
        self._lanes: dict[int, Lanes] | None = None  # by API key

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

    def _pass(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
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

    def _decode_in_turns(self, frame: memoryview, now_ms: int) -> Buffers | Deferred:
        broker = self._requests.broker
        request = LongRequest(memoryview(bytearray(frame)), self, now_ms, broker)
        answer = request.run()
        return Deferred(request, answer, broker) if isinstance(answer, Pending) else answer

    def _new_lanes(self, request: Request) -> Lanes:
        assert request.endpoint.lanes is not None
        if self._lanes is None:
            self._lanes = {}
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
