"""What the session of a connection answers to a request: the frame, or that it comes later.

`Buffers` is the frame of the answer: its parts, in order. An empty list: the request gets no answer.
`Deferred` is an answer that is not there yet. BadRequest: there will be none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker

T = TypeVar("T")

Buffers = list[Any]  # bytes, bytearray, memoryview or FileRange


class BadRequest(Exception):
    """The frame cannot be answered; the connection must close."""

    def __init__(self, reason: str, *, last: Buffers | None = None, quiet: bool = False) -> None:
        """``last``: a frame to send before that. ``quiet``: the log has heard enough of this."""
        super().__init__(reason)
        self.last = last or []
        self.quiet = quiet


class Unassigned(Pending[T]):
    """The answer to a Produce whose batches have no place in their logs yet."""

    __slots__ = ()


class Answerable(Protocol):
    """A request, as far as it takes to answer it."""

    @property
    def waits_for_others(self) -> bool: ...
    def may_overlap(self, answer: Pending[Any]) -> bool: ...
    def framed(self, answer: Any, broker: Broker) -> Buffers | Pending[Buffers]: ...
    def failed(self, error: BaseException) -> Any: ...


class Deferred:
    """A request that waits for its answer."""

    __slots__ = ("_broker", "_request", "answer")

    def __init__(self, request: Answerable, answer: Pending[Any], broker: Broker) -> None:
        self._request = request
        self._broker = broker
        self.answer = answer

    @property
    def waits_for_others(self) -> bool:
        """What its answer waits for is the doing of other clients, or of time."""
        return self._request.waits_for_others

    @property
    def may_overlap(self) -> bool:
        """Whether the next request may start meanwhile."""
        return self._request.may_overlap(self.answer)

    def framed(self) -> Buffers | Deferred:
        """The frame, once the answer is settled; or another wait, for something that takes time to encode."""
        try:
            answer = self.answer.result()
        except BadRequest:
            raise
        except Exception as error:
            answer = self._request.failed(error)
        if answer is None:
            return []
        return framed(self._request, answer, self._broker)


class _Framed:
    """A request whose frame, or a Deferred that will have it, is what is waited for."""

    __slots__ = ("waits_for_others",)

    def __init__(self, waits_for_others: bool) -> None:
        self.waits_for_others = waits_for_others

    def may_overlap(self, answer: Pending[Any]) -> bool:
        return False

    def framed(self, answer: Buffers, broker: Broker) -> Buffers:
        return answer

    def failed(self, error: BaseException) -> Any:
        raise error


def framed(request: Answerable, answer: Any, broker: Broker) -> Buffers | Deferred:
    frame = request.framed(answer, broker)
    return Deferred(_FRAMED, frame, broker) if isinstance(frame, Pending) else frame


def held(request: Answerable, frame: Pending[Any], broker: Broker) -> Deferred:
    """A request that is not executed yet; what it gets then, a frame or a Deferred, comes later."""
    return Deferred(_Framed(request.waits_for_others), frame, broker)


_FRAMED = _Framed(waits_for_others=False)
