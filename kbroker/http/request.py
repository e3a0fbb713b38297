"""A request as endpoints see it: who sends it, what it asks for, and its body, which is bounded.

A body counts in the broker's budget from its first byte until the answer is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import parse_qs

from kbroker.http.bodies import document_of, rest_of_body
from kbroker.http.exchange import ClientGone
from kbroker.http.problems import Problem
from kbroker.quotas.entities import PRODUCER_BYTE_RATE

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from kbroker.authentication.credentials import Identity, RequestLogins
    from kbroker.broker import Broker
    from kbroker.http.connection import HttpConnection
    from kbroker.http.quotas import HttpQuotas, Usage
    from kbroker.quotas.throttling import RequestThrottle
    from kbroker.requests.resources import Resources
    from kbroker.security.principal import Principal

T = TypeVar("T", str, int, bool, float)

_TRUE = frozenset(("true", "1", "yes", "on", ""))
_FALSE = frozenset(("false", "0", "no", "off"))
_MAX_LONG = (1 << 63) - 1


class HttpCaller:
    """Who asks, for the authorizer, the quotas and the audit log."""

    __slots__ = ("api_name", "client_id", "peer_host", "principal", "throttle")

    def __init__(self, principal: Principal, peer_host: str, api_name: str, client_id: str = "") -> None:
        self.principal = principal
        self.peer_host = peer_host
        self.api_name = api_name
        self.client_id = client_id
        self.throttle: RequestThrottle | None = None


class HttpRequest:
    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        broker: Broker,
        connection: HttpConnection,
        path: dict[str, str],
        request_id: str,
        logins: RequestLogins | None,
        quotas: HttpQuotas,
    ) -> None:
        self._receive = receive
        self.scope = scope
        self.broker = broker
        self.connection = connection
        self.path = path
        """The parameters of the path."""
        self.request_id = request_id
        # The first one counts where a name comes twice.
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])
        }
        """By names that are written small."""
        self.caller: HttpCaller = None  # type: ignore[assignment]  # set once it is known
        self._resources: Resources | None = None
        self._parameters: dict[str, list[str]] | None = None
        self.logins = logins
        self.identity: Identity | None = None
        """Who logged in with it, where the listener asks for that."""
        self.quota: str | None = None
        """Of the bytes that it publishes or reads, if it does."""
        self.quotas = quotas
        self._usage: Usage | None = None
        self.held_bytes = 0
        self._body_bytes = 0  # set aside
        self.finished = False
        """Whether the whole body was read."""
        self._body: bytes | None = None

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def resources(self) -> Resources:
        if self._resources is None:
            self._resources = self.broker.resources(self.caller)
        return self._resources

    @property
    def now_ms(self) -> int:
        return self.broker.clock()

    @property
    def base_url(self) -> str:
        """How the client reached us."""
        scheme = str(self.scope["scheme"]).replace("ws", "http")
        host = self.headers.get("host")
        if host is None:
            address, port = self.scope["server"][:2]
            host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        return f"{scheme}://{host}"

    @property
    def usage(self) -> Usage | None:
        """What it uses of the quotas of its caller; None: there are none."""
        throttling = self.broker.throttling
        if throttling is None:
            return None
        if self._usage is None:
            from kbroker.http.quotas import Usage  # with the first quota

            self._usage = Usage(self.quotas, throttling, self)
        return None if self._usage.limits is None else self._usage

    # what is asked

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Of the query."""
        if self._parameters is None:
            query = self.scope["query_string"]
            self._parameters = parse_qs(query.decode("latin-1"), keep_blank_values=True) if query else {}
        return self._parameters

    @overload
    def query(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def query(self, name: str, kind: type[T], default: T) -> T: ...
    def query(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        """A parameter of the query. Raises Problem."""
        texts = self.parameters.get(name)
        if texts is None:
            return default
        return _parsed(texts[-1], kind, name)

    def path_int(self, name: str) -> int:
        """A parameter of the path that is a number, such as a partition."""
        text = self.path[name]
        if not text.isascii() or not text.isdecimal() or len(text) > 10:
            raise Problem(400, f"{name} in the path must be a number from 0 on, not {text!r}.")
        return int(text)

    def accepts(self, *media_types: str) -> str | None:
        """The first of these that the client prefers; None: none of them will do."""
        accept = self.headers.get("accept")
        if accept is None:
            return media_types[0]
        best, chosen = 0.0, None
        ranges = [_media_range(part) for part in accept.split(",")[:50]]
        for media_type in media_types:
            quality = _quality(media_type, ranges)
            if quality > best:
                best, chosen = quality, media_type
        return chosen

    # the body

    async def body(self, limit: int | None = None) -> bytes:
        """All of it. Raises Problem for one that is too long, or too late."""
        if self._body is None:
            most = self.broker.settings["kbroker.http.max.request.bytes"] if limit is None else limit
            self._check_announced(most)
            message = await self._next()
            if not message.get("more_body"):
                self._body = message.get("body", b"")
                self._hold_body(len(self._body), most)
            else:
                self._body = await rest_of_body(
                    self, message.get("body", b""), self._next, lambda size: self._hold_body(size, most)
                )
            self.finished = True
            if self.quota == PRODUCER_BYTE_RATE and (usage := self.usage) is not None:
                usage.produced(len(self._body))
        return self._body

    async def json(self) -> Any:
        body = await self.body()
        if not body:
            raise Problem(400, "The body is empty: send a JSON document.")
        try:
            document, _ = await document_of(self, body)
        except (ValueError, RecursionError) as error:
            raise Problem(400, f"The body is not JSON: {error}.") from None
        return document

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, for endpoints that answer before its end. Nothing of it is kept."""
        while True:
            message = await self._next()
            body = message.get("body", b"")
            if not message.get("more_body"):
                self.finished = True
            if self.quota == PRODUCER_BYTE_RATE and (usage := self.usage) is not None:
                usage.produced(len(body))
                await usage.pace(PRODUCER_BYTE_RATE)
            if body:
                yield body
            if self.finished:
                return

    async def disconnected(self) -> None:
        """Return when the client is gone; only after the whole body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def hold(self, size: int) -> None:
        """So many bytes more are kept until the answer is sent; fewer, if it is negative."""
        self.held_bytes += size
        self.connection.hold(size)

    def release(self) -> None:
        """The answer is sent: what was held is given back, and what was used is known."""
        if self._usage is not None:
            self._usage.ended()
        held, self.held_bytes = self.held_bytes, 0
        self.connection.hold(-held)
        body, self._body_bytes = self._body_bytes, 0
        self.connection.set_aside(-body)

    async def _next(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message

    def _check_announced(self, most: int) -> None:
        announced = self.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise _too_long(most)

    def _hold_body(self, size: int, most: int) -> None:
        self._body_bytes += size
        self.connection.set_aside(size)
        if self._body_bytes > most:
            raise _too_long(most)


def _too_long(most: int) -> Problem:
    return Problem(
        413,
        f"The body may have {most} bytes at most (kbroker.http.max.request.bytes): send it in parts.",
        maxBytes=most,
    )


def _parsed(text: str, kind: type[T], name: str) -> T:
    if kind is str:
        return kind(text)
    what = f"The parameter {name}"
    if kind is bool:
        folded = text.lower()
        if folded in _TRUE or folded in _FALSE:
            return kind(folded in _TRUE)
        raise Problem(400, f"{what} must be true or false, not {text!r}.")
    try:
        if not text.isascii() or len(text) > 20:
            raise ValueError
        value = kind(text)
    except ValueError:
        raise Problem(400, f"{what} must be a number, not {text[:50]!r}.") from None
    if not isinstance(value, str) and not -_MAX_LONG <= value <= _MAX_LONG:
        raise Problem(400, f"{what} is out of range.")
    return value


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip() for part in text.split(";"))
    quality = 1.0
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                quality = float(parameter[2:])
            except ValueError:
                quality = 0.0
    return name.lower(), quality


def _quality(media_type: str, ranges: list[tuple[str, float]]) -> float:
    kind = media_type.partition("/")[0]
    most_specific: dict[int, float] = {}
    for name, quality in ranges:
        rank = 3 if name == media_type else 2 if name == f"{kind}/*" else 1 if name == "*/*" else 0
        if rank:
            most_specific[rank] = quality
    return most_specific[max(most_specific)] if most_specific else 0.0
