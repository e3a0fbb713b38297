"""A decoded request: from a frame to what its handler answers, and from that to a frame.

What cannot be answered raises BadRequest: the connection logs one line and closes, as Kafka does.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Generator
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kbroker.errors import error_code
from kbroker.pending import Pending
from kbroker.protocol.codec import ProtocolError, decode, decode_in_steps, encode, encode_in_steps
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.headers import RequestHeader
from kbroker.requests.answers import BadRequest, Buffers, Unassigned
from kbroker.requests.apis import BY_KEY
from kbroker.requests.context import Peer, RequestContext
from kbroker.requests.endpoint import Endpoint, endpoint_of
from kbroker.requests.long_requests import Steps, holding
from kbroker.requests.refusals import refusal
from kbroker.requests.throttled import answered, timed

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.network.budget import Budget

logger = logging.getLogger("kbroker.dispatch")

T = TypeVar("T")

_API_VERSIONS = 18
_SMALL_ANSWER_BYTES = 64 * 1024  # a larger one holds, while it is made, what the largest would take
_LARGEST_PART = 4  # of the budget, that one answer may take
_KEY_AND_VERSION = struct.Struct(">hh")
_KEY_VERSION_CORRELATION = struct.Struct(">hhi")
_SIZE_AND_CORRELATION = struct.Struct(">ii")


class Request:
    """A decoded request, ready to run."""

    __slots__ = ("_in_turns", "body", "context", "endpoint")

    def __init__(self, endpoint: Endpoint, context: RequestContext, body: Any) -> None:
        self._in_turns = False
        self.endpoint = endpoint
        self.context = context
        self.body = body

    def may_overlap(self, answer: Pending[Any]) -> bool:
        """Whether the next request may start while the answer waits.

        It waits for the disk then, or for offsets that the log gives in the order of the appends.
        """
        return self.endpoint.traits.overlaps and not self._in_turns and not isinstance(answer, Unassigned)

    @property
    def waits_for_others(self) -> bool:
        """What its answer waits for is the doing of other clients, or of time."""
        return self.endpoint.traits.long_poll

    def run(self, broker: Broker) -> Any:
        """The handler's answer: a response, a Pending of one, or None for no answer."""
        try:
            answer = self.endpoint.handle(broker, self.body, self.context)
            if type(answer) is GeneratorType:
                self._in_turns = True
                if self.context.throttle is not None:
                    answer = timed(answer, self.context.throttle)
                answer = broker.long_requests.run(answer)
        except BadRequest:
            raise
        except Exception as error:
            answer = self.failed(error)
        if broker.audit is not None:
            from kbroker.requests.admin_changes import audited

            answer = audited(broker.audit, self.context, self.body, answer)
        return answer

    def failed(self, error: BaseException) -> Any:
        """The response to a request whose handler raised."""
        code = error_code(error)
        if code is None:
            logger.error("%s failed", self.describe(), exc_info=error, extra=self._who())
        if self.endpoint.refuse is not None:
            return self.endpoint.refuse(self.body, self.context, error)
        message = error.message if isinstance(error, ApiError) else None
        return self.refused(code or ErrorCode.UNKNOWN_SERVER_ERROR, message)

    def refused(self, code: ErrorCode, message: str | None = None) -> Any:
        """The response that says this code wherever it can, and the message if there is one."""
        if self.endpoint.refuse is not None:
            return self.endpoint.refuse(self.body, self.context, ApiError(code, message))
        return refusal(self.body, self.endpoint.response, self.endpoint.version, code, message)

    def frame(self, response: Any) -> Buffers:
        """The whole response frame, as parts."""
        throttle = self.context.throttle
        return self._frame(response) if throttle is None else answered(throttle, response, self._frame)

    def _frame(self, response: Any) -> Buffers:
        start = self._start()
        return self._whole(start, encode(response, self.endpoint.version, start))

    def framed(self, answer: Any, broker: Broker) -> Buffers | Pending[Buffers]:
        """The same, now or later: an answer with long lists takes turns with what others want."""
        self.count_errors(answer, broker)
        if not (self.endpoint.may_be_long or self._in_turns):
            return self.frame(answer)
        return broker.long_requests.run(self.frame_in_steps(answer, broker))

    def count_errors(self, answer: Any, broker: Broker) -> None:
        """Of an answer that is about to be encoded, once."""
        count = self.endpoint.count_errors
        if count is not None:
            count(answer, broker.traffic.by_key[self.context.api_key].errors)

    def frame_in_steps(self, response: Any, broker: Broker) -> Steps[Buffers]:
        """The whole response frame; a large one holds, while it is made, what the largest would take."""
        if self.context.throttle is not None:
            self.context.throttle.answer(response)
        start = self._start()
        encoding = encode_in_steps(response, self.endpoint.version, start)
        parts = yield from _below(encoding, _SMALL_ANSWER_BYTES)
        if parts is None:
            largest = largest_answer(broker.budget)
            parts = yield from holding(broker.budget, largest, _below(encoding, largest))
        return self._whole(start, parts)

    def encode_in_steps(self, response: Any, largest: int) -> Steps[Buffers]:
        """The same, where its bytes are reserved already."""
        if self.context.throttle is not None:
            self.context.throttle.answer(response)
        start = self._start()
        parts = yield from _below(encode_in_steps(response, self.endpoint.version, start), largest)
        return self._whole(start, parts)

    def _start(self) -> bytearray:
        return bytearray(9 if self.endpoint.flexible_response else 8)

    def _whole(self, start: bytearray, parts: Buffers | None) -> Buffers:
        """The frame that begins with `start`; one that refuses, if it became too large."""
        if parts is None:
            text = "%s is refused: its answer has too many bytes"
            logger.warning(text, self.describe(), extra=self._who())
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

    def _who(self) -> dict[str, Any]:
        """For the log."""
        context = self.context
        return {
            "connection": context.peer.connection,
            "peer": context.peer_host,
            "request": context.correlation_id,
            "api": self.endpoint.name,
            "client": context.client_id,
        }


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
        most_steps = endpoint.traits.max_decoding_steps
        if most_steps is not None:
            decoding = _short(decoding, most_steps)
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
    endpoint = endpoint_of(api_key, version)
    most_bytes = endpoint.traits.max_request_bytes
    if most_bytes is not None and len(frame) > most_bytes:
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


def _unsupported_api_versions(frame: memoryview, peer: Peer, now_ms: int) -> Request:
    """It gets an answer of version 0, and tries again."""
    endpoint = endpoint_of(_API_VERSIONS, 0)
    _, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
    context = RequestContext(_API_VERSIONS, version, correlation_id, None, now_ms, peer)
    return Request(endpoint, context, endpoint.request())


def _below(encoding: Generator[int, None, Buffers], limit: int) -> Steps[Buffers | None]:
    """What is encoded; None as soon as it has more bytes than that, and the encoding can go on."""
    try:
        while next(encoding) <= limit:
            yield None
    except StopIteration as end:
        return cast("Buffers", end.value)
    return None


def largest_answer(budget: Budget) -> int:
    """How many bytes an answer may have."""
    return max(budget.limit // _LARGEST_PART, _SMALL_ANSWER_BYTES)
