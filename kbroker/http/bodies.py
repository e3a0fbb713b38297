"""Bodies that come in parts: within their limit, in time, and where memory is short one after the other.

A part is asked for when the budget has room for it. Where it has none for kbroker.http.max.throttle.ms, the
request is answered 503: its client may send it again. How long the broker let a client wait does not count
as its delay.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kbroker.http.exchange import UNREAD_BYTES
from kbroker.http.problems import Problem
from kbroker.http.waiting import unless_closed
from kbroker.network.awaiting import settled
from kbroker.pending import Pending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kbroker.http.request import HttpRequest

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


async def _room(request: HttpRequest) -> int:
    """Wait for room for a part: how many bytes are reserved."""
    granted: Pending[None] = Pending()
    budget = request.broker.budget
    withdraw = budget.reserve_for_body(_PART_BYTES, lambda: granted.resolve(None), request)
    if withdraw is None:
        return _PART_BYTES
    longest_ms: int = request.broker.settings["kbroker.http.max.throttle.ms"]
    try:
        async with asyncio.timeout(longest_ms / 1000):
            await unless_closed(request, settled(granted))
    except BaseException as error:
        if granted.succeeded:
            budget.give_back(_PART_BYTES)
        withdraw()
        if isinstance(error, TimeoutError):
            raise no_room(longest_ms) from None
        raise
    return _PART_BYTES


def no_room(waited_ms: int) -> Problem:
    return Problem(
        503,
        f"The broker has had no room for this body for {waited_ms} ms: others are worked on "
        "(queued.max.request.bytes). Send it again, in smaller parts if you can.",
        headers={"retry-after": str(_RETRY_AFTER_SECONDS)},
        retriable=True,
    )
