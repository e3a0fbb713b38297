"""A stream as server-sent events.

The id of an event is the position of the client behind it: with that as Last-Event-ID the next stream goes
on where this one has ended. Events that are no records have names: ``gap`` tells what was deleted before it
could be read, ``end`` why the stream ends. An event with an id and nothing else lets the position move.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.http.answers import Response, encoded, raw_headers
from kbroker.http.endpoint import Answer, Endpoint
from kbroker.http.exchange import ClientGone
from kbroker.http.problems import Problem, problem_of
from kbroker.http.streams.asked import PARAMETERS, Asked, open_stream
from kbroker.http.streams.feed import Feed, Message
from kbroker.http.streams.outlet import Outlet, Validity
from kbroker.quotas.entities import CONSUMER_BYTE_RATE

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from kbroker.http.request import HttpRequest

EVENT_STREAM = "text/event-stream"
_RETRY_MS = 2000
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


async def stream(request: HttpRequest) -> Response:
    if request.accepts(EVENT_STREAM) is None:
        raise Problem(406, f"A stream is {EVENT_STREAM}, or a WebSocket.")
    if not request.query("autoCommit", bool, default=True):
        raise Problem(400, "Who reads events cannot commit: autoCommit=false is for a WebSocket.")
    validity = Validity(request)
    await request.body()
    asked = await open_stream(request)
    return _EventStream(request, asked, validity)


class _Events:
    """The form of a stream (feed.Form)."""

    def begin(self, position: str) -> bytes:
        return f"retry: {_RETRY_MS}\n".encode() + (self.position(position) or b"\n")

    def records(self, messages: Sequence[Message]) -> bytes:
        return b"".join(
            [
                b"id: %s\ndata: %s\n\n" % (position.encode(), record)
                if position
                else b"data: %s\n\n" % record
                for record, position in messages
            ]
        )

    def gap(self, gap: bytes, position: str) -> bytes:
        return _id(position) + b"event: gap\ndata: %s\n\n" % gap

    def position(self, position: str) -> bytes:
        return f"{_id(position).decode()}\n".encode() if position else b""

    def still_there(self) -> bytes:
        return b":\n\n"

    def end(self, problem: Problem) -> bytes:
        return b"event: end\ndata: %s\n\n" % encoded(problem.document())


def _id(position: str) -> bytes:
    return f"id: {position}\n".encode() if position else b""


class _EventStream(Response):
    __slots__ = ("_asked", "_request", "_validity")

    def __init__(self, request: HttpRequest, asked: Asked, validity: Validity) -> None:
        super().__init__(None, 200, _HEADERS, EVENT_STREAM)
        self._request = request
        self._asked = asked
        self._validity = validity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": raw_headers(self.headers)})
        if scope["method"] == "HEAD":
            await self._asked.source.close()
        else:
            await self._feed(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _feed(self, send: Send) -> None:
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})
            await asyncio.sleep(0)  # what one turn writes is written together: now it is

        validity = self._validity
        outlet = Outlet(self._request, write)
        validity.on_end = outlet.change
        events = _Events()
        try:
            await Feed(self._request, *self._asked, events, outlet, validity).run()
        except ClientGone:
            self._request.connection.abort()
        except Exception as error:
            await outlet.send(events.end(problem_of(error)))
        finally:
            validity.stop()
            outlet.close()


_STREAM = Answer(
    "Events: records as JSON, each with the position behind it as its id.",
    {EVENT_STREAM: {"type": "string"}},
)

ENDPOINTS = (
    Endpoint(
        "GET",
        "/topics/{topic}/stream",
        stream,
        "Records as they come, as server-sent events.",
        PARAMETERS,
        answers={200: _STREAM},
        quota=CONSUMER_BYTE_RATE,
        tag="streams",
        description="Each event is a record as JSON; its id, sent as Last-Event-ID, lets the next stream go "
        "on behind it. The event gap tells what was deleted before it was read, the event end why the stream "
        "ends.",
    ),
)
