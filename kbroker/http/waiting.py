"""Waiting for what may take long, for a client that may go away meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kbroker.http.exchange import ClientGone
from kbroker.network.awaiting import settled
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.http.connection import HttpConnection
    from kbroker.http.request import HttpRequest

T = TypeVar("T")


class OnConnection(Protocol):
    """What came on a connection and ends with it."""

    @property
    def connection(self) -> HttpConnection: ...


async def _gone(request: HttpRequest) -> None:
    connection = request.connection
    if connection.sends_no_more:
        return
    ended = asyncio.Event()
    connection.on_eof = ended.set
    closed = asyncio.ensure_future(request.disconnected())
    closed.add_done_callback(lambda _: ended.set())
    try:
        await ended.wait()
    finally:
        connection.on_eof = None
        closed.cancel()


async def unless_gone(request: HttpRequest, result: T | Pending[T]) -> T:
    """The result. When the client is gone nobody waits for it: it is abandoned, and ClientGone raised.

    A client that sends no more counts as gone: what it waits for may be records that nobody else gets.
    The body must have been read.
    """
    if not isinstance(result, Pending) or result.done:
        return await settled(result)
    waiting = asyncio.ensure_future(settled(result))
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((waiting, gone), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            request.connection.abort()
            raise ClientGone
        value: T = waiting.result()
        return value
    finally:
        for task in (waiting, gone):
            task.cancel()
        await asyncio.gather(waiting, gone, return_exceptions=True)


async def unless_closed(request: OnConnection, awaited: Coroutine[Any, Any, T]) -> T:
    """The same, also before the body was read. When the connection is lost it is cancelled, and ClientGone
    raised.
    """
    waiting = asyncio.ensure_future(awaited)
    forget = request.connection.on_close(waiting.cancel)
    try:
        value: T = await waiting
        return value
    except asyncio.CancelledError:
        if not request.connection.lost:
            raise
        raise ClientGone from None
    finally:
        forget()
        waiting.cancel()
