"""Work of a request that may take long, done in turns with all other requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest
    from kbroker.pending import Pending
    from kbroker.requests.long_requests import Steps

T = TypeVar("T")


async def in_turns(request: HttpRequest, steps: Steps[T | Pending[T]]) -> T:
    """What the steps return. They are closed where they stand if the client goes away."""
    usage = request.usage
    if usage is not None and usage.times:
        from kbroker.http.quotas import timed

        steps = timed(steps, usage)
    return await settled(request.broker.long_requests.run(steps))
