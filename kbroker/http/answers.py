"""Answers of the endpoints: made at once, or part by part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from kbroker.http.compact_json import compact

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send


class Response:
    """An answer that is there as a whole."""

    __slots__ = ("body", "headers", "media_type", "status_code")

    def __init__(
        self,
        body: bytes | None = None,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        self.body = body or b""
        self.status_code = status_code
        self.headers: dict[str, str] = dict(headers) if headers else {}
        """Their names are written small."""
        self.media_type = media_type
        if media_type is not None:
            self.headers["content-type"] = media_type

    async def whole(self) -> bytes:
        """Its body, for who does not send it."""
        parts: list[bytes] = []

        async def receive() -> Message:
            raise NotImplementedError

        async def collect(message: Message) -> None:
            parts.append(message.get("body", b""))

        await self({"type": "http"}, receive, collect)
        return b"".join(parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As an ASGI application."""
        kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
        headers = [*raw_headers(self.headers), (b"content-length", b"%d" % len(self.body))]
        await send({"type": f"{kind}.start", "status": self.status_code, "headers": headers})
        await send({"type": f"{kind}.body", "body": self.body})


class Streamed(Response):
    """One whose parts are asked for when the one before went out."""

    __slots__ = ("_parts",)

    def __init__(
        self,
        parts: AsyncGenerator[bytes],
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        super().__init__(None, status_code, headers, media_type)
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._parts) as parts:
            headers = raw_headers(self.headers)
            await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
            async for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def encoded(value: Any) -> bytes:
    """As JSON."""
    return json_bytes(compact(value))


def json_bytes(text: str) -> bytes:
    """A name that is no UTF-8 goes out as it came."""
    return text.encode(errors="surrogateescape")


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(value), status, headers, "application/json")


def bytes_answer(
    data: bytes,
    media_type: str = "application/octet-stream",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    return Response(data, status, headers, media_type)


def no_content(headers: Mapping[str, str] | None = None) -> Response:
    return Response(None, 204, headers)


def streamed(
    parts: AsyncGenerator[bytes], media_type: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Streamed:
    """Each part is asked for when the one before it went out."""
    return Streamed(parts, status, headers, media_type)
