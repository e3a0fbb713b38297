"""From a frame to a handler and back to a frame.

A request is looked up in the API table, decoded, handled and its answer encoded. Endpoints (decoder, handler,
response layout) are bound per (api key, version) on first use. What cannot be answered raises
``BadRequest``: the connection logs one line and closes, as Kafka does.
"""

from __future__ import annotations

import importlib
import logging
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kbroker.apis import BY_KEY
from kbroker.context import Peer, RequestContext
from kbroker.errors import ApiError, error_code
from kbroker.protocol.codec import ProtocolError, decode, encode
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader, request_header_version, response_header_version
from kbroker.protocol.messages import request_type, response_type
from kbroker.refusals import refusal
from kbroker.storage.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker

logger = logging.getLogger("kbroker.dispatch")

T = TypeVar("T")

_API_VERSIONS = 18
_PRODUCE = 0
_LONG_POLLS = frozenset((1, 11, 14))  # Fetch, JoinGroup, SyncGroup
# Requests without records: decoded, many small entries take some 35 times their bytes.
_MAX_PLAIN_BYTES = 8 * 1024 * 1024
_KEY_AND_VERSION = struct.Struct(">hh")
_SIZE_AND_CORRELATION = struct.Struct(">ii")

Buffers = list[Any]  # parts of a frame, in order: bytes, bytearray or memoryview


class BadRequest(Exception):
    """The frame cannot be answered; the connection must close."""


class Unassigned(Pending[T]):
    """The answer to a Produce that has not been given its offsets yet."""

    __slots__ = ()


class Answerable(Protocol):
    """A request, as far as it takes to answer it."""

    @property
    def waits_for_others(self) -> bool: ...
    def may_overlap(self, answer: Pending[Any]) -> bool: ...
    def frame(self, answer: Any) -> Buffers: ...
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
        lanes=getattr(handler, "lanes", None),
    )
    _endpoints[api_key, version] = endpoint
    return endpoint


class Request:
    """A decoded request, ready to run."""

    __slots__ = ("body", "context", "endpoint")

    def __init__(self, endpoint: Endpoint, context: RequestContext, body: Any) -> None:
        self.endpoint = endpoint
        self.context = context
        self.body = body

    def may_overlap(self, answer: Pending[Any]) -> bool:
        """Only a Produce whose offsets are assigned may wait while the next request starts."""
        return self.context.api_key == _PRODUCE and not isinstance(answer, Unassigned)

    @property
    def waits_for_others(self) -> bool:
        """What its answer waits for is the doing of other clients, or of time."""
        return self.context.api_key in _LONG_POLLS

    def run(self, broker: Broker) -> Any:
        """The handler's answer: a response, a Pending of one, or None for no answer."""
        try:
            return self.endpoint.handle(broker, self.body, self.context)
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
        start = bytearray(9 if self.endpoint.flexible_response else 8)
        parts: Buffers = encode(response, self.endpoint.version, start)
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


def parse(frame: memoryview, peer: Peer, now_ms: int) -> Request:
    """Decode a frame (without its length)."""
    if len(frame) < 8:
        raise BadRequest(f"a frame of {len(frame)} bytes is too short for a request header")
    api_key, version = _KEY_AND_VERSION.unpack_from(frame)
    if api_key == _API_VERSIONS and not 0 <= version <= BY_KEY[_API_VERSIONS].max_version:
        return _unsupported_api_versions(frame, peer, now_ms, version)
    endpoint = _endpoints.get((api_key, version)) or _bind(api_key, version)
    if api_key != _PRODUCE and len(frame) > _MAX_PLAIN_BYTES:
        raise BadRequest(f"{endpoint.name} v{version} of {len(frame)} bytes is too large")
    try:
        header, position = decode(RequestHeader, endpoint.header_version, frame)
        # What follows the body is ignored, as Kafka does: librdkafka appends bytes to some requests.
        body, _ = decode(endpoint.request, version, frame, position)
    except ProtocolError as error:
        raise BadRequest(f"malformed {endpoint.name} v{version}: {error}") from error
    context = RequestContext(api_key, version, header.correlation_id, header.client_id, now_ms, peer)
    return Request(endpoint, context, body)


def _unsupported_api_versions(frame: memoryview, peer: Peer, now_ms: int, version: int) -> Request:
    """A client newer than us asks for our versions: it gets a version 0 answer and tries again."""
    endpoint = _endpoints.get((_API_VERSIONS, 0)) or _bind(_API_VERSIONS, 0)
    (correlation_id,) = struct.unpack_from(">i", frame, 4)
    context = RequestContext(_API_VERSIONS, version, correlation_id, None, now_ms, peer)
    return Request(endpoint, context, endpoint.request())
