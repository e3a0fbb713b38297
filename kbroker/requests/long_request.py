"""A request that takes long to decode: decoded, executed and answered in turns with others."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from kbroker.pending import Pending, wait
from kbroker.requests.answers import BadRequest, Buffers
from kbroker.requests.endpoint import endpoint_of
from kbroker.requests.long_requests import Steps, holding
from kbroker.requests.request import Request, largest_answer, parse_in_steps
from kbroker.requests.throttled import begin, run, timed

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.quotas.throttling import RequestThrottle
    from kbroker.requests.context import Peer

_DECODED_BYTES = 35  # what a byte of many small entries takes when it is decoded
_KEY_AND_VERSION = struct.Struct(">hh")


class LongRequest:
    """The request, as far as it takes to answer it."""

    __slots__ = ("_broker", "_frame", "_now_ms", "_peer", "_request", "_throttle")

    def __init__(
        self,
        frame: memoryview,
        peer: Peer,
        now_ms: int,
        broker: Broker,
        throttle: RequestThrottle | None = None,
    ) -> None:
        """``frame``: of its own, not a part of a read buffer."""
        self._frame = frame
        self._peer = peer
        self._now_ms = now_ms
        self._broker = broker
        self._throttle = throttle
        self._request: Request | None = None

    @property
    def waits_for_others(self) -> bool:
        return self._request is None or self._request.waits_for_others

    def may_overlap(self, answer: Pending[Any]) -> bool:
        return False

    def framed(self, answer: Buffers, broker: Broker) -> Buffers:
        return answer

    def failed(self, error: BaseException) -> Any:
        raise error

    def run(self) -> Buffers | Pending[Buffers]:
        """Decode, execute and answer the request; nothing at all if it gets no answer."""
        return self._broker.long_requests.run(self._steps())

    def _steps(self) -> Steps[Buffers]:
        budget = self._broker.budget
        size = len(self._frame)
        decoded = min(size * _DECODED_BYTES, budget.limit // 2)
        endpoint = endpoint_of(*_KEY_AND_VERSION.unpack_from(self._frame))
        waits = endpoint.traits.overlaps or endpoint.traits.long_poll  # for the budget, or for others
        budget.set_aside(size)
        try:
            if not waits:
                return (yield from holding(budget, decoded + largest_answer(budget), self._answer()))
            request = yield from holding(budget, decoded, self._parse())
        finally:
            budget.take_up(size)
        self._request = request
        answer = yield from _outcome(request, self._run(request))
        if answer is None:
            return []
        request.count_errors(answer, self._broker)
        if endpoint.traits.long_poll and endpoint.traits.bounded_answer:
            return request.frame(answer)
        return (yield from request.frame_in_steps(answer, self._broker))

    def _answer(self) -> Steps[Buffers]:
        """All of it, within what was reserved for it."""
        request = self._request = yield from self._parse()
        answer = yield from _outcome(request, self._run(request))
        request.count_errors(answer, self._broker)
        return (yield from request.encode_in_steps(answer, largest_answer(self._broker.budget)))

    def _run(self, request: Request) -> Any:
        broker, throttle = self._broker, self._throttle
        return request.run(broker) if throttle is None else run(request, throttle, broker)

    def _parse(self) -> Steps[Request]:
        if self._throttle is None:
            return parse_in_steps(self._frame, self._peer, self._now_ms)
        return self._parse_throttled(self._throttle)

    def _parse_throttled(self, throttle: RequestThrottle) -> Steps[Request]:
        request = yield from timed(parse_in_steps(self._frame, self._peer, self._now_ms), throttle)
        begin(request, throttle)
        return request


def _outcome(request: Request, answer: Any) -> Steps[Any]:
    """What is answered, once it is there, also if that is why it failed."""
    if not isinstance(answer, Pending):
        return answer
    try:
        return (yield from wait(answer))
    except BadRequest:
        raise
    except Exception as error:
        return request.failed(error)
