"""The calls that code in the process makes: on the broker's loop, in turns with all others, ended with it.

Invariants:
- A call from another loop, or another thread, is refused before it touches anything.
- Calls that are answered at once do not keep the loop for longer than a slice, however many come one after
  the other: others have their turn in between.
- Who still waits when the broker is closed hears of it: ClosedError.
- What Kafka would refuse is raised as a KafkaError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from kbroker.local.errors import ClosedError, WrongLoopError, kafka_errors
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.local.sources import Source
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.security.authorizer import Caller

P = ParamSpec("P")
T = TypeVar("T")

_SLICE_SECONDS = 0.002
_UNCOUNTED_BYTES = 64 * 1024


class Calls:
    """Of one LocalBroker, whoever they are made as."""

    def __init__(self) -> None:
        self.sources: set[Source] = set()
        """What open subscriptions read from."""
        self._broker: Broker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._slice_ends = 0.0
        self._was_open = False

    # its life

    @property
    def is_open(self) -> bool:
        return self._broker is not None

    def begin(self, broker: Broker) -> None:
        self._broker, self._loop = broker, asyncio.get_running_loop()
        self._was_open = True

    def end(self) -> None:
        """Nothing more is asked, and nobody waits any longer."""
        self._broker = None
        waiting, self._waiting = self._waiting, set()
        for arrived in waiting:
            if not arrived.done():
                arrived.set_exception(self._closed())
                arrived.exception()  # it is no fault if nobody looks

    @property
    def broker(self) -> Broker:
        """For a call that is made now. Raises ClosedError and WrongLoopError."""
        if self._broker is None:
            raise self._closed()
        if _running_loop() is not self._loop:
            raise WrongLoopError(
                "this broker runs on another event loop: call it from there (from another thread: "
                "asyncio.run_coroutine_threadsafe)"
            )
        return self._broker

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop

    def _closed(self) -> ClosedError:
        if self._was_open:
            return ClosedError("the broker is closed")
        return ClosedError("the broker is not open: use it as 'async with LocalBroker(…) as broker'")

    # waiting

    @overload
    async def settled(self, result: Pending[T]) -> T: ...
    @overload
    async def settled(self, result: T | Pending[T]) -> T: ...
    async def settled(self, result: Any) -> Any:
        """The value, once it is there. A call that is cancelled meanwhile abandons it."""
        if isinstance(result, Pending):
            if not result.done:
                try:
                    await self.arrival(result)
                except BaseException:
                    result.abandon()
                    raise
            return result.result()
        if perf_counter() >= self._slice_ends:
            await self.turn()
        return result

    def arrival(self, result: Pending[Any]) -> asyncio.Future[None]:
        """It is done when the result is there; when the broker is closed before that, it fails."""
        arrived: asyncio.Future[None] = self.loop.create_future()
        self._waiting.add(arrived)
        arrived.add_done_callback(self._waiting.discard)
        result.then(lambda _: None if arrived.done() else arrived.set_result(None))
        return arrived

    @property
    def slice_is_over(self) -> bool:
        return perf_counter() >= self._slice_ends

    async def turn(self) -> None:
        """Let others have theirs."""
        await asyncio.sleep(0)
        self._slice_ends = perf_counter() + _SLICE_SECONDS


class Access:
    """What is asked for in somebody's name. ``caller``: None for the owner, who may do everything."""

    def __init__(self, calls: Calls, caller: Caller | None) -> None:
        self._calls = calls
        self._caller = caller

    @property
    def _resources(self) -> Resources:
        broker = self._calls.broker
        return broker.own_resources if self._caller is None else broker.resources(self._caller)

    def _now_ms(self) -> int:
        return self._calls.broker.clock()

    async def _when_there_is_room(self, size: int, publish: Callable[[], Awaitable[T]]) -> T:
        """What is published, begun when the process has room for so many bytes, which count until then."""
        if size <= _UNCOUNTED_BYTES:
            return await publish()
        budget = self._calls.broker.budget
        granted: Pending[None] = Pending()
        withdraw = budget.reserve(size, lambda: granted.resolve(None), granted)
        try:
            try:
                await self._calls.settled(granted)
            except BaseException:
                if granted.succeeded:
                    budget.give_back(size)
                elif withdraw is not None:
                    withdraw()
                raise
            budget.set_aside(size)  # what publishing needs besides does not wait for this
            budget.give_back(size)
            try:
                return await publish()
            finally:
                budget.take_up(size)
        finally:
            budget.frame_ended(granted)

    @overload
    async def _ask(
        self,
        operation: Callable[Concatenate[Resources, P], Steps[T | Pending[T]]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T: ...
    @overload
    async def _ask(
        self,
        operation: Callable[Concatenate[Resources, P], Steps[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T: ...
    @overload
    async def _ask(
        self,
        operation: Callable[Concatenate[Resources, P], Pending[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T: ...
    @overload
    async def _ask(
        self,
        operation: Callable[Concatenate[Resources, P], T | Pending[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T: ...
    async def _ask(self, operation: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What an operation comes to, with what the caller may reach as its first argument."""
        resources = self._resources
        with kafka_errors:
            result = operation(resources, *arguments, **options)
            if isinstance(result, Generator):
                result = resources.broker.long_requests.run(result)
            return await self._calls.settled(result)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
