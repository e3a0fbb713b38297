"""Quotas of HTTP clients: those of Kafka's clients (adr/0029), held in HTTP's way.

A client of Kafka's protocol is answered and then not heard for a while. One of HTTP may come by another
connection, so that its requests wait before they are begun:

- While its user or client id is above a quota, a request waits until it is not, kbroker.http.max.throttle.ms
  at most. What would have to wait longer is answered with status 429 and Retry-After, and nothing was done.
- Above producer_byte_rate are requests that publish, counted by their bodies; above consumer_byte_rate those
  that read, counted by their answers; above request_percentage all, by their time on the event loop.
- What lasts waits in its midst, as long as it must: a body that comes piece by piece, a stream.
- Partitions that come or go count in controller_mutation_rate, and are refused above it.

A client without quotas has no `Usage`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kbroker.http.problems import Problem
from kbroker.http.waiting import OnConnection, unless_closed
from kbroker.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from kbroker.quotas.throttling import RequestThrottle

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.http.request import HttpCaller
    from kbroker.quotas.throttling import ClientLimits, Limit, Tags, Throttling

T = TypeVar("T")

_Shared = tuple[int, str, "Tags"]
"""The generation of the quotas, the quota, and who shares it."""
_FEWEST = 1000  # before those whose time is over are looked for
_LONGEST_PAUSE_MS = 1000  # then the quotas may be others


class HttpQuotas:
    """Until when clients have to wait."""

    def __init__(self) -> None:
        self._until: dict[_Shared, int] = {}
        self._look_above = _FEWEST

    def record(self, throttling: Throttling, limit: Limit, size: int) -> None:
        """So much was used; or was not, if it is below 0, though it was said to be."""
        now_ms = throttling.clock()
        rate = throttling.rate(limit, now_ms)
        rate.record(size, now_ms)
        # The rate forgets after some windows, also what was too much for all of them.
        key = (throttling.generation, limit.key, limit.tags)
        until = self._until.get(key, now_ms) + int(min(size, 0) / limit.bound * 1000)
        until = max(until, now_ms + rate.throttle_ms(limit.bound, now_ms))
        if until > now_ms:
            self._until[key] = until
            if len(self._until) > self._look_above:
                self._until = {each: until for each, until in self._until.items() if until > now_ms}
                self._look_above = max(2 * len(self._until), _FEWEST)
        else:
            self._until.pop(key, None)

    def wait_ms(self, throttling: Throttling, limit: Limit) -> int:
        """Until it may be used again."""
        now_ms = throttling.clock()
        until = self._until.get((throttling.generation, limit.key, limit.tags), 0)
        return max(throttling.rate(limit, now_ms).throttle_ms(limit.bound, now_ms), until - now_ms)


class Limited(OnConnection, Protocol):
    """A request, or a call, of a client that may have quotas."""

    @property
    def broker(self) -> Broker: ...
    @property
    def caller(self) -> HttpCaller: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def quota(self) -> str | None:
        """Of the bytes that it publishes or reads, if it does."""


class Usage:
    """What one request uses."""

    def __init__(self, quotas: HttpQuotas, throttling: Throttling, request: Limited) -> None:
        self._quotas = quotas
        self._throttling = throttling
        self._request = request
        self._generation = -1
        self._limits: ClientLimits | None = None
        self._reserved = 0
        self.seconds = 0.0
        """On the event loop."""

    @property
    def limits(self) -> ClientLimits | None:
        """The quotas as they are now; None: the client has none."""
        throttling, caller = self._throttling, self._request.caller
        if self._generation != throttling.generation:
            self._generation = throttling.generation
            self._limits = throttling.limits_of(caller.principal.name, caller.client_id)
        return self._limits

    @property
    def times(self) -> bool:
        """Whether its time on the event loop counts."""
        return self.limits is not None and self.limits.request is not None

    # before it begins

    async def admit(self) -> None:
        """Wait until it may begin. Raises Problem: 429."""
        request, clock = self._request, self._throttling.clock
        settings = request.broker.settings
        last_ms = clock() + settings["kbroker.http.max.throttle.ms"]
        while wait_ms := max(self._request_wait_ms(), self._wait_ms(request.quota)):
            if clock() + wait_ms > last_ms:
                raise _too_much(wait_ms)
            await self._pause(wait_ms)
        if self.limits is None:
            return
        if self.limits.mutation is not None:
            throttle = request.caller.throttle = RequestThrottle(self._throttling, self.limits, 0, None)
            throttle.strict = True
        if request.quota == PRODUCER_BYTE_RATE:
            # Of several that wait for their turn, the next is to know of the first before its body is there.
            announced = request.headers.get("content-length", "")
            if announced.isdecimal():
                self._reserved = min(int(announced), settings["kbroker.http.max.request.bytes"])
                self._record(PRODUCER_BYTE_RATE, self._reserved)

    # while it is served

    def produced(self, size: int) -> None:
        """So many bytes of what it publishes have come."""
        covered = min(size, self._reserved)
        self._reserved -= covered
        self._record(PRODUCER_BYTE_RATE, size - covered)

    def consumed(self, size: int) -> None:
        """So many bytes of what it reads are sent."""
        self._record(CONSUMER_BYTE_RATE, size)

    async def pace(self, quota: str) -> None:
        """Wait until more of this may come or go, in the midst of what lasts."""
        while wait_ms := self._wait_ms(quota):
            await self._pause(min(wait_ms, _LONGEST_PAUSE_MS))

    # when it has ended

    def ended(self) -> None:
        """What was announced and did not come is not used."""
        if self._reserved:
            self._record(PRODUCER_BYTE_RATE, -self._reserved)
        if self.seconds and self.limits is not None and self.limits.request is not None:
            now_ms = self._throttling.clock()
            self._throttling.rate(self.limits.request, now_ms).record(self.seconds * 100, now_ms)

    def _limit(self, quota: str | None) -> Limit | None:
        if self.limits is None:
            return None
        if quota == PRODUCER_BYTE_RATE:
            return self.limits.produce
        return self.limits.fetch if quota == CONSUMER_BYTE_RATE else None

    def _record(self, quota: str, size: int) -> None:
        limit = self._limit(quota)
        if limit is not None and size:
            self._quotas.record(self._throttling, limit, size)

    def _wait_ms(self, quota: str | None) -> int:
        limit = self._limit(quota)
        return 0 if limit is None else max(self._quotas.wait_ms(self._throttling, limit), 0)

    def _request_wait_ms(self) -> int:
        """A window at most, as in Kafka."""
        limit = None if self.limits is None else self.limits.request
        if limit is None:
            return 0
        now_ms = self._throttling.clock()
        rate = self._throttling.rate(limit, now_ms)
        return min(rate.throttle_ms(limit.bound, now_ms), self._throttling.windows.size_ms)

    async def _pause(self, wait_ms: int) -> None:
        await unless_closed(self._request, asyncio.sleep((wait_ms + 1) / 1000))


class Timed(Awaitable[T]):
    """The same coroutine; what it takes on the event loop counts."""

    def __init__(self, coroutine: Awaitable[T], usage: Usage) -> None:
        self._coroutine = coroutine
        self._usage = usage

    def __await__(self) -> Generator[Any, Any, T]:
        return timed(self._coroutine.__await__(), self._usage)


def timed(steps: Generator[Any, Any, T], usage: Usage) -> Generator[Any, Any, T]:
    """The same steps; what they take counts."""
    go_on: Callable[[], Any] = steps.__next__
    while True:
        began = perf_counter()
        try:
            waited_for = go_on()
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            usage.seconds += perf_counter() - began
        try:
            yield waited_for
        except BaseException as error:
            go_on = partial(steps.throw, error)
        else:
            go_on = steps.__next__


def _too_much(wait_ms: int) -> Problem:
    return Problem(
        429,
        f"The quota of this user or client id is used up: try again in {wait_ms} ms.",
        headers={"retry-after": retry_after(wait_ms)},
        retryAfterMs=wait_ms,
    )


def retry_after(wait_ms: int) -> str:
    """In whole seconds."""
    return str(max(-(-wait_ms // 1000), 1))
