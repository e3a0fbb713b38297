"""kbroker with endpoints that last, as streams do: a WebSocket and server-sent events, and one that fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from kbroker.cli import main
from kbroker.http import table
from kbroker.http.answers import json_answer, streamed
from kbroker.http.authentication import on_session_end
from kbroker.http.endpoint import WEBSOCKET, Endpoint
from kbroker.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest


async def echo(websocket: WebSocket, request: HttpRequest) -> None:
    """Says who it is, then what it hears, until the session ends."""
    closing: list[asyncio.Task[None]] = []

    def end(reason: str) -> None:
        closing.append(asyncio.ensure_future(websocket.close(1008, reason)))

    withdraw = on_session_end(request, end)
    try:
        await websocket.accept()
        await websocket.send_text(str(request.caller.principal))
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message["text"]
            if request.usage is not None:
                request.usage.produced(len(text))
                await request.usage.pace(PRODUCER_BYTE_RATE)
            await websocket.send_text(text)
    finally:
        withdraw()


async def events(request: HttpRequest) -> Response:
    """Events of 10,000 bytes, as fast as they are taken, until the session ends."""
    ended = asyncio.Event()
    withdraw = on_session_end(request, lambda _: ended.set())

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield f"data: {request.caller.principal}\n\n".encode()
            for _ in range(request.query("parts", int, 0)):
                yield b"data: " + b"x" * 9_992 + b"\n\n"
            if "wait" in request.parameters:
                await ended.wait()
        finally:
            withdraw()

    return streamed(parts(), "text/event-stream")


async def fail(request: HttpRequest) -> Response:
    await request.body()
    raise RuntimeError("of a test")


async def none(_: HttpRequest) -> Response:
    return json_answer(None)


ENDPOINTS = (
    Endpoint(WEBSOCKET, "/echo", none, "", socket=echo, quota=CONSUMER_BYTE_RATE),
    Endpoint("GET", "/events", events, "", quota=CONSUMER_BYTE_RATE),
    Endpoint("POST", "/fail", fail, ""),
)

if __name__ == "__main__":
    sys.modules["tests.http.lasting"] = sys.modules["__main__"]
    table._PLAIN = (*table._PLAIN, "tests.http.lasting")
    raise SystemExit(main())
