"""Bodies that come in parts, and long documents: within their limits, in time, in turns, and where memory is
short one after the other.

A part is asked for when the budget has room for it. Where it has none for kbroker.http.max.throttle.ms, the
request is answered 503: its client may send it again. How long the broker let a client wait does not count
as its delay.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kbroker.http.at_once import in_a_task
from kbroker.http.exchange import UNREAD_BYTES
from kbroker.http.json_documents import AT_ONCE_BYTES, parsed, size_when_parsed
from kbroker.http.problems import Problem
from kbroker.http.turns import in_turns
from kbroker.http.waiting import unless_closed
from kbroker.network.awaiting import settled
from kbroker.pending import Pending

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from kbroker.http.request import HttpRequest

Granted = Callable[[], None]
Withdraw = Callable[[], None]

_PART_BYTES: Final = UNREAD_BYTES
_RETRY_AFTER_SECONDS: Final = 1


async def rest_of_body(
    request: HttpRequest, first: bytes, receive: Callable[[], Awaitable[Any]], hold: Callable[[int], None]
) -> bytes:
    """The whole body, of which this is the first part. Raises Problem.

    ``hold``: accounts for as many bytes, or raises where these are too many.
    """
    timeout_ms: int = request.broker.settings["kbroker.http.request.timeout.ms"]
    budget = request.broker.budget
    parts = bytearray(first)
    hold(len(first))
    left_seconds = timeout_ms / 1000
    try:
        while True:
            reserved = await _room(request)
            began = monotonic()
            try:
                async with asyncio.timeout(left_seconds):
                    message = await receive()
            except TimeoutError:
                raise Problem(
                    408, f"The body did not come within {timeout_ms} ms (kbroker.http.request.timeout.ms)."
                ) from None
            finally:
                budget.give_back(reserved)
            left_seconds -= monotonic() - began
            part = message.get("body", b"")
            hold(len(part))
            parts += part
            if not message.get("more_body"):
                return bytes(parts)
    finally:
        budget.body_ended(request)


async def document_of(request: HttpRequest, body: bytes) -> tuple[Any, int]:
    """What the body says in JSON, in turns, once the budget has room for that; and how many bytes the request
    holds for it. ValueError, RecursionError: it is no JSON.
    """
    if len(body) <= AT_ONCE_BYTES:
        return json.loads(body), 0
    size = await in_turns(request, size_when_parsed(body))
    budget = request.broker.budget
    if size * 2 > budget.limit:
        raise Problem(
            413,
            f"The body would take about {size} bytes of memory, which is more than half of "
            f"queued.max.request.bytes ({budget.limit}): send it in parts.",
        )
    await _granted(request, size, partial(budget.reserve_for_document, size))
    request.hold(size)
    budget.give_back(size)
    try:
        return await in_turns(request, parsed(body)), size
    except BaseException:
        request.hold(-size)
        raise


async def _room(request: HttpRequest) -> int:
    """Wait for room for a part: how many bytes are reserved."""
    reserve = request.broker.budget.reserve_for_body
    await _granted(request, _PART_BYTES, lambda granted: reserve(_PART_BYTES, granted, request))
    return _PART_BYTES


async def _granted(request: HttpRequest, size: int, reserve: Callable[[Granted], Withdraw | None]) -> None:
    begun: Pending[None] = Pending()
    withdraw = reserve(lambda: begun.resolve(None))
    if withdraw is None:
        return
    granted: Pending[None] = Pending(withdraw)
    begun.then(granted.follow)
    longest_ms: int = request.broker.settings["kbroker.http.max.throttle.ms"]
    try:
        await in_a_task()
        async with asyncio.timeout(longest_ms / 1000):
            await unless_closed(request, settled(granted))
    except BaseException as error:
        if granted.succeeded:
            request.broker.budget.give_back(size)
        else:
            granted.abandon()
        if isinstance(error, TimeoutError):
            raise no_room(longest_ms) from None
        raise


def no_room(waited_ms: int) -> Problem:
    return Problem(
        503,
        f"The broker has had no room for this body for {waited_ms} ms: others are worked on "
        "(queued.max.request.bytes). Send it again, in smaller parts if you can.",
        headers={"retry-after": str(_RETRY_AFTER_SECONDS)},
        retriable=True,
    )
