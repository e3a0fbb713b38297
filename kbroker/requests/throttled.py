"""Requests of clients that have quotas: where on a request's way its use is measured."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.quotas.throttling import RequestThrottle
    from kbroker.requests.answers import Buffers
    from kbroker.requests.request import Request

T = TypeVar("T")
S = TypeVar("S")


class Stopwatch:
    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = perf_counter()

    @property
    def seconds(self) -> float:
        return perf_counter() - self._began


def begin(request: Request, throttle: RequestThrottle) -> None:
    """The request is decoded."""
    request.context.throttle = throttle
    throttle.api_key = request.context.api_key
    since = request.endpoint.traits.refuses_mutations_since
    throttle.strict = since is not None and request.context.api_version >= since


def timed(steps: Generator[S, None, T], throttle: RequestThrottle) -> Generator[S, None, T]:
    """The same steps; what they take counts."""
    try:
        while True:
            watch = Stopwatch()
            try:
                waited_for = next(steps)
            except StopIteration as end:
                value: T = end.value
                break
            finally:
                throttle.seconds += watch.seconds
            yield waited_for
    finally:
        steps.close()
    if value is None:
        throttle.unanswered()
    return value


def run(request: Request, throttle: RequestThrottle, broker: Broker) -> Any:
    """The handler's answer, as `Request.run` has it; None: there is none."""
    watch, before = Stopwatch(), throttle.seconds
    answer = request.run(broker)
    throttle.seconds = before + watch.seconds  # the first turn of steps is a part of it
    if answer is None:
        throttle.unanswered()
    return answer


def answered(throttle: RequestThrottle, response: Any, frame: Callable[[Any], Buffers]) -> Buffers:
    """The frame of a response in which the client is told how long it has to wait."""
    throttle.answer(response)
    watch = Stopwatch()
    parts = frame(response)
    throttle.encoded(watch.seconds)
    return parts
