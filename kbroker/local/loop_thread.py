"""For code without an event loop: a broker on a loop of its own, in a thread of its own.

    broker = LocalBroker(data="data")
    with LoopThread(broker) as thread:
        thread.run(broker.publish("orders", "hello"))
        for record in thread.each(broker.subscribe("orders", group="billing")):
            ...

Its calls may come from any thread but that one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kbroker.local.errors import ClosedError

if TYPE_CHECKING:
    from kbroker.local.broker import LocalBroker
    from kbroker.local.records import ReceivedRecord
    from kbroker.local.subscription import Subscription

T = TypeVar("T")


class LoopThread:
    def __init__(self, broker: LocalBroker) -> None:
        """``broker``: opened and closed with the `with` block."""
        self._broker = broker
        self._opened: Future[asyncio.AbstractEventLoop] = Future()
        self._ends = asyncio.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._opened, self._ends = Future(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="kbroker-local")
        self._thread.start()
        try:
            self._opened.result()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """What the call comes to. Who interrupts the wait cancels it."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            call.close()
            if thread is None:
                raise ClosedError("the broker is not open: use it within 'with LoopThread(broker)'")
            raise RuntimeError("on the broker's own loop its calls are awaited")
        running = asyncio.run_coroutine_threadsafe(call, self._opened.result())
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def each(self, subscription: Subscription) -> Iterator[ReceivedRecord]:
        """Records one after the other; the subscription is closed when the iteration ends."""
        try:
            while True:
                try:
                    record = self.run(subscription.__anext__())
                except StopAsyncIteration:
                    return
                yield record
        finally:
            if self._thread is not None:
                asyncio.run_coroutine_threadsafe(subscription.close(), self._opened.result())

    async def _live(self) -> None:
        try:
            async with self._broker:
                self._opened.set_result(asyncio.get_running_loop())
                await self._ends.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            if self._opened.exception() is None:  # once it is known
                self._opened.result().call_soon_threadsafe(self._ends.set)
            thread.join()
