"""Coroutines that wait for a Pending."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kbroker.network.awaiting import settled
from kbroker.pending import Pending


def test_a_value_and_a_settled_pending_are_there_at_once() -> None:
    assert asyncio.run(settled(5)) == 5
    assert asyncio.run(settled(Pending.resolved(5))) == 5


def test_a_coroutine_gets_what_comes_later() -> None:
    async def wait() -> int:
        later: Pending[int] = Pending()
        asyncio.get_running_loop().call_soon(later.resolve, 5)
        return await settled(later)

    assert asyncio.run(wait()) == 5


def test_a_failure_is_raised() -> None:
    async def wait() -> int:
        later: Pending[int] = Pending()
        asyncio.get_running_loop().call_soon(later.fail, OSError("no room"))
        return await settled(later)

    with pytest.raises(OSError, match="no room"):
        asyncio.run(wait())


def test_a_coroutine_that_is_cancelled_abandons_the_pending() -> None:
    cleaned_up = []

    async def wait() -> bool:
        later: Pending[int] = Pending(lambda: cleaned_up.append(True))
        waiting = asyncio.ensure_future(settled(later))
        await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        return later.abandoned

    assert asyncio.run(wait())
    assert cleaned_up == [True]
