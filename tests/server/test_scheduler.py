"""The scheduler on the event loop: nothing comes before its time."""

from __future__ import annotations

import asyncio
import time

import uvloop

from kbroker.running_broker import LoopScheduler

_TIMES = 500


def test_no_callback_comes_before_its_time() -> None:
    """libuv counts whole milliseconds: about one timer in 300 came too early."""

    async def waits() -> list[int]:
        loop = asyncio.get_running_loop()
        scheduler = LoopScheduler(loop)
        waited = []
        for _ in range(_TIMES):
            called = loop.create_future()
            begun = time.monotonic_ns()
            scheduler.after(2, lambda called=called: called.set_result(None))  # type: ignore[misc]
            await called
            waited.append(time.monotonic_ns() - begun)
        return waited

    assert min(uvloop.run(waits())) >= 2_000_000
