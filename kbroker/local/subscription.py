"""A subscription: records one after the other, or some at a time (sources.py: what is done, and when).

However the iteration ends (break, exception, cancellation), the group is left: at once with `async with` or
`close`, else when nobody has the subscription any more. Only the end of `async with` without an exception
says that what is in its user's hands is done, too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Self

from kbroker.local.errors import ClosedError, kafka_errors

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import TopicPartition
    from kbroker.local.calls import Calls
    from kbroker.local.records import ReceivedRecord
    from kbroker.local.sources import Source

_AHEAD = 500  # records


class Subscription:
    """Made by `subscribe`. One task at a time reads it."""

    def __init__(self, calls: Calls, open_source: Callable[[], Awaitable[Source]]) -> None:
        self._calls = calls
        self._open_source = open_source
        self._source: Source | None = None
        self._closed = False
        self._asking = False

    @property
    def assignment(self) -> list[TopicPartition]:
        """What is read now; nothing before the first record is asked for."""
        return [] if self._source is None else self._source.consumer.assignment

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedRecord:
        source = await self._ready(_AHEAD)
        if source is None:
            raise StopAsyncIteration
        return source.take_one()

    async def poll(self, max_records: int = _AHEAD, max_wait_ms: int | None = None) -> list[ReceivedRecord]:
        """The next records, as soon as there are some; none if none come within the wait.

        What was handed out before is done with this call.
        """
        if max_records < 1:
            raise ValueError(f"max_records is 1 or more, not {max_records}")
        try:
            async with asyncio.timeout(None if max_wait_ms is None else max_wait_ms / 1000):
                source = await self._ready(max(max_records, _AHEAD))
        except TimeoutError:
            return []
        return [] if source is None else source.take(max_records)

    async def commit(self) -> None:
        """All that was handed out, what is in hand included."""
        if self._source is not None:
            await self._source.commit_handed_out()

    async def rewind(self) -> None:
        """Let what was handed out and is not committed come again."""
        _ = self._calls.broker
        if self._asking:
            raise RuntimeError("somebody waits for a record of this subscription")
        if self._source is not None:
            self._source.rewind()

    async def close(self) -> None:
        """Leave the group. What is in hand is not done."""
        if self._calls.is_open:
            _ = self._calls.broker  # on its own loop only
        self._closed = True
        source, self._source = self._source, None
        if source is not None:
            with contextlib.suppress(ClosedError):
                await self._calls.settled(source.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None and self._source is not None:
            self._source.put_down()
        await self.close()

    def __del__(self) -> None:
        """Whoever iterated has gone away without a word."""
        if self._source is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the broker with it
                self._calls.loop.call_soon_threadsafe(self._source.close)

    async def _ready(self, ahead: int) -> Source | None:
        """With something to take. What was handed out is done. None: it is closed."""
        _ = self._calls.broker  # raises unless it is open, and this its loop
        if self._closed:
            return None
        if self._asking:
            raise RuntimeError("a subscription is read by one task at a time: subscribe again for another")
        source = self._source
        if source is not None:
            source.put_down()
            if source.is_ready:
                return source
        self._asking = True
        try:
            with kafka_errors:
                if source is None:
                    source = self._source = await self._open_source()
                await source.make_ready(ahead)
        finally:
            self._asking = False
        return source


def source_of(subscription: Subscription) -> Source | None:
    """None: nothing was asked of it yet."""
    return subscription._source
