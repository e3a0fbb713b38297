"""From a frame to a handler and back to a frame.

A request is looked up in the API table, decoded, handled and its answer encoded. Endpoints (decoder, handler,
response layout) are bound per (api key, version) on first use. What cannot be answered raises
``BadRequest``: the connection logs one line and closes, as Kafka does.
"""

from __future__ import annotations

import importlib
import logging
import struct
from collections.abc import Callable, Generator
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from kbroker.errors import error_code
from kbroker.pending import Pending, wait
from kbroker.protocol.codec import ProtocolError, decode, decode_in_steps, encode, encode_in_steps
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.headers import RequestHeader, request_header_version, response_header_version
from kbroker.protocol.message import has_lists
from kbroker.protocol.messages import request_type, response_type
from kbroker.requests.apis import BY_KEY
from kbroker.requests.context import Peer, RequestContext
from kbroker.requests.long_requests import Steps, holding
from kbroker.requests.refusals import refusal

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.network.budget import Budget

logger = logging.getLogger("kbroker.dispatch")

T = TypeVar("T")

_API_VERSIONS = 18
_PRODUCE = 0
_FETCH = 1
_LONG_POLLS = frozenset((_FETCH, 11, 14))  # JoinGroup, SyncGroup
_BOUNDED_ANSWERS = frozenset((_PRODUCE, _FETCH))  # by the request, and by limits of their own
_MAX_PLAIN_BYTES = 4 * 1024 * 1024  # of a request without records
_MOST_PRODUCE_STEPS = 2000  # of decoding a Produce, whose size is mostly its records': 128,000 partitions
_DECODED_BYTES = 35  # what a byte of many small entries takes when it is decoded
_SMALL_ANSWER_BYTES = 64 * 1024  # a larger one holds, while it is made, what the largest would take
_LARGEST_PART = 4  # of the budget, that one answer may take
_KEY_AND_VERSION = struct.Struct(">hh")
_KEY_VERSION_CORRELATION = struct.Struct(">hhi")
_SIZE_AND_CORRELATION = struct.Struct(">ii")

Buffers = list[Any]  # parts of a frame, in order: bytes, bytearray or memoryview


class BadRequest(Exception):
    """The frame cannot be answered; the connection must close."""


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


class Taken(NamedTuple):
    """A request that was not decoded, and what it is answered later."""

    request: Answerable
    answer: Pending[Any]


class Lanes(Protocol):
    """What a connection learns of requests that it decoded, to answer others like them without."""

    def take(self, frame: memoryview, now_ms: int) -> Any:
        """The whole answer as bytes, or Taken; or a response, or a Pending of one, for which the request is
        decoded; None: decode and run the request.
        """

    def take_run(self, view: memoryview, now_ms: int) -> tuple[bytes, int]:
        """The answers to the first requests of `view`, each behind its size, and how many bytes these have.

        `view` begins with a whole one. Nothing, and 0: take it alone.
        """

    def learn(self, frame: memoryview, request: Request, answer: Any) -> None:
        """A request that was decoded, and the response that it got at once, or the Pending of one."""


class Endpoint(NamedTuple):
    name: str
    version: int
    header_version: int
    flexible_response: bool
    request: type[Any]
    response: type[Any]
    handle: Callable[..., Any]
    refuse: Callable[..., Any] | None  # builds the answer for a request whose handler failed
    may_be_long: bool  # the answer has lists, which may be long
    lanes: Callable[[Broker], Lanes] | None  # for an API whose requests repeat


_endpoints: dict[tuple[int, int], Endpoint] = {}


def _bind(api_key: int, version: int) -> Endpoint:
    api = BY_KEY.get(api_key)
    if api is None:
        raise BadRequest(f"unknown API key {api_key}")
    if not api.min_version <= version <= api.max_version:
        raise BadRequest(f"{api.name} version {version} is not supported")
    try:
        handler = importlib.import_module(f"kbroker.handlers.{api.module}")
        request, response = request_type(api_key), response_type(api_key)
    except OSError as error:  # no descriptor for it now; the next connection may be luckier
        raise BadRequest(f"{api.name} cannot be loaded: {error}") from error
    endpoint = Endpoint(
        name=api.name,
        version=version,
        header_version=request_header_version(api_key, version),
        flexible_response=response_header_version(api_key, version) == 1,
        request=request,
        response=response,
        handle=handler.handle,
        refuse=getattr(handler, "refuse", None),
        may_be_long=api_key not in _BOUNDED_ANSWERS and has_lists(response),
        lanes=getattr(handler, "lanes", None),
    )
    _endpoints[api_key, version] = endpoint
    return endpoint


class Request:
    """A decoded request, ready to run."""

    __slots__ = ("_in_turns", "body", "context", "endpoint")

    def __init__(self, endpoint: Endpoint, context: RequestContext, body: Any) -> None:
        self._in_turns = False
        self.endpoint = endpoint
        self.context = context
        self.body = body

    def may_overlap(self, answer: Pending[Any]) -> bool:
        """Only a Produce whose batches have their place may wait while the next request starts.

        It waits for the disk then, or for offsets that the log gives in the order of the appends.
        """
        return self.context.api_key == _PRODUCE and not self._in_turns and not isinstance(answer, Unassigned)

    @property
    def waits_for_others(self) -> bool:
        """What its answer waits for is the doing of other clients, or of time."""
        return self.context.api_key in _LONG_POLLS

    def run(self, broker: Broker) -> Any:
        """The handler's answer: a response, a Pending of one, or None for no answer."""
        try:
            answer = self.endpoint.handle(broker, self.body, self.context)
            if type(answer) is not GeneratorType:
                return answer
            self._in_turns = True
            return broker.long_requests.run(answer)
        except BadRequest:
            raise
        except Exception as error:
            return self.failed(error)

    def failed(self, error: BaseException) -> Any:
        """The response to a request whose handler raised."""
        code = error_code(error)
        if code is None:
            logger.error("%s failed", self.describe(), exc_info=error)
        if self.endpoint.refuse is not None:
            return self.endpoint.refuse(self.body, self.context, error)
        return self.refused(code or ErrorCode.UNKNOWN_SERVER_ERROR)

    def refused(self, code: ErrorCode) -> Any:
        """The response that says this code wherever it can."""
        if self.endpoint.refuse is not None:
            return self.endpoint.refuse(self.body, self.context, ApiError(code))
        return refusal(self.body, self.endpoint.response, self.endpoint.version, code)

    def frame(self, response: Any) -> Buffers:
        """The whole response frame, as parts."""
        start = self._start()
        return self._whole(start, encode(response, self.endpoint.version, start))

    def framed(self, answer: Any, broker: Broker) -> Buffers | Pending[Buffers]:
        """The same, now or later: an answer with long lists takes turns with what others want."""
        if not (self.endpoint.may_be_long or self._in_turns):
            return self.frame(answer)
        return broker.long_requests.run(self.frame_in_steps(answer, broker))

    def frame_in_steps(self, response: Any, broker: Broker) -> Steps[Buffers]:
        """The whole response frame; a large one holds, while it is made, what the largest would take."""
        start = self._start()
        encoding = encode_in_steps(response, self.endpoint.version, start)
        parts = yield from _below(encoding, _SMALL_ANSWER_BYTES)
        if parts is None:
            largest = _largest_answer(broker.budget)
            parts = yield from holding(broker.budget, largest, _below(encoding, largest))
        return self._whole(start, parts)

    def encode_in_steps(self, response: Any, largest: int) -> Steps[Buffers]:
        """The same, where its bytes are reserved already."""
        start = self._start()
        parts = yield from _below(encode_in_steps(response, self.endpoint.version, start), largest)
        return self._whole(start, parts)

    def _start(self) -> bytearray:
        return bytearray(9 if self.endpoint.flexible_response else 8)

    def _whole(self, start: bytearray, parts: Buffers | None) -> Buffers:
        """The frame that begins with `start`; one that refuses, if it became too large."""
        if parts is None:
            logger.warning("%s is refused: its answer has too many bytes", self.describe())
            return self.frame(self.refused(ErrorCode.POLICY_VIOLATION))
        size = sum(map(len, parts)) - 4
        _SIZE_AND_CORRELATION.pack_into(start, 0, size, self.context.correlation_id)
        return parts

    def answering(self, correlation_id: int) -> Request:
        """The same, sent another time."""
        context = self.context
        again = RequestContext(
            context.api_key,
            context.api_version,
            correlation_id,
            context.client_id,
            context.now_ms,
            context.peer,
        )
        return Request(self.endpoint, again, self.body)

    def describe(self) -> str:
        return f"{self.endpoint.name} v{self.endpoint.version} from {self.context.client_id!r}"


class LongRequest:
    """A request that takes long to decode: what a connection needs of it meanwhile."""

    __slots__ = ("_request",)

    def __init__(self) -> None:
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

    def run(
        self,
        frame: memoryview,
        peer: Peer,
        now_ms: int,
        broker: Broker,
        execute: Callable[[Request, memoryview], Any],
    ) -> Buffers | Pending[Buffers]:
        """Decode, execute and answer the request; nothing at all if it gets no answer."""
        return broker.long_requests.run(self._steps(frame, peer, now_ms, broker, execute))

    def _steps(
        self,
        frame: memoryview,
        peer: Peer,
        now_ms: int,
        broker: Broker,
        execute: Callable[[Request, memoryview], Any],
    ) -> Steps[Buffers]:
        budget = broker.budget
        decoded = min(len(frame) * _DECODED_BYTES, budget.limit // 2)
        api_key, _ = _KEY_AND_VERSION.unpack_from(frame)
        waits = api_key == _PRODUCE or api_key in _LONG_POLLS  # for others, or for the budget
        budget.set_aside(len(frame))
        try:
            if not waits:
                steps = self._answer(frame, peer, now_ms, broker, execute)
                return (yield from holding(budget, decoded + _largest_answer(budget), steps))
            request = yield from holding(budget, decoded, parse_in_steps(frame, peer, now_ms))
        finally:
            budget.take_up(len(frame))
        self._request = request
        answer = yield from _outcome(request, execute(request, frame))
        if answer is None:
            return []
        if api_key == _FETCH:  # has limits of its own
            return request.frame(answer)
        return (yield from request.frame_in_steps(answer, broker))

    def _answer(
        self,
        frame: memoryview,
        peer: Peer,
        now_ms: int,
        broker: Broker,
        execute: Callable[[Request, memoryview], Any],
    ) -> Steps[Buffers]:
        """All of it, within what was reserved for it."""
        request = self._request = yield from parse_in_steps(frame, peer, now_ms)
        answer = yield from _outcome(request, execute(request, frame))
        return (yield from request.encode_in_steps(answer, _largest_answer(broker.budget)))


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


def _largest_answer(budget: Budget) -> int:
    return max(budget.limit // _LARGEST_PART, _SMALL_ANSWER_BYTES)


def parse(frame: memoryview, peer: Peer, now_ms: int) -> Request:
    """Decode a frame (without its length)."""
    endpoint = _endpoint_of(frame)
    if endpoint is None:
        return _unsupported_api_versions(frame, peer, now_ms)
    try:
        header, position = decode(RequestHeader, endpoint.header_version, frame)
        # What follows the body is ignored, as Kafka does: librdkafka appends bytes to some requests.
        body, _ = decode(endpoint.request, endpoint.version, frame, position)
    except ProtocolError as error:
        raise _malformed(endpoint, error) from error
    return _request(endpoint, header, body, peer, now_ms)


def parse_in_steps(frame: memoryview, peer: Peer, now_ms: int) -> Steps[Request]:
    """The same, of a frame with long lists in it."""
    endpoint = _endpoint_of(frame)
    if endpoint is None:
        return _unsupported_api_versions(frame, peer, now_ms)
    try:
        header, position = decode(RequestHeader, endpoint.header_version, frame)
        decoding = decode_in_steps(endpoint.request, endpoint.version, frame, position)
        if header.request_api_key == _PRODUCE:
            decoding = _short(decoding, _MOST_PRODUCE_STEPS)
        body, _ = yield from decoding
    except ProtocolError as error:
        raise _malformed(endpoint, error) from error
    return _request(endpoint, header, body, peer, now_ms)


def _endpoint_of(frame: memoryview) -> Endpoint | None:
    """None: a client newer than us asks for our versions."""
    if len(frame) < 8:
        raise BadRequest(f"a frame of {len(frame)} bytes is too short for a request header")
    api_key, version = _KEY_AND_VERSION.unpack_from(frame)
    if api_key == _API_VERSIONS and not 0 <= version <= BY_KEY[_API_VERSIONS].max_version:
        return None
    endpoint = _endpoints.get((api_key, version)) or _bind(api_key, version)
    if api_key != _PRODUCE and len(frame) > _MAX_PLAIN_BYTES:
        raise BadRequest(f"{endpoint.name} v{version} of {len(frame)} bytes is too large")
    return endpoint


def _request(endpoint: Endpoint, header: RequestHeader, body: Any, peer: Peer, now_ms: int) -> Request:
    context = RequestContext(
        header.request_api_key, endpoint.version, header.correlation_id, header.client_id, now_ms, peer
    )
    return Request(endpoint, context, body)


def _malformed(endpoint: Endpoint, error: ProtocolError) -> BadRequest:
    return BadRequest(f"malformed {endpoint.name} v{endpoint.version}: {error}")


def _short(steps: Generator[None, None, T], most: int) -> Generator[None, None, T]:
    """The same steps; ProtocolError if there are more."""
    for _ in range(most):
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)
        yield
    raise ProtocolError("it has too many entries")


def _below(encoding: Generator[int, None, Buffers], limit: int) -> Steps[Buffers | None]:
    """What is encoded; None as soon as it has more bytes than that, and the encoding can go on."""
    try:
        while next(encoding) <= limit:
            yield None
    except StopIteration as end:
        return cast("Buffers", end.value)
    return None


def _unsupported_api_versions(frame: memoryview, peer: Peer, now_ms: int) -> Request:
    """It gets an answer of version 0, and tries again."""
    endpoint = _endpoints.get((_API_VERSIONS, 0)) or _bind(_API_VERSIONS, 0)
    _, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
    context = RequestContext(_API_VERSIONS, version, correlation_id, None, now_ms, peer)
    return Request(endpoint, context, endpoint.request())
