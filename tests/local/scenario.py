"""Tests that are coroutines, each on a loop of its own, within a minute."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import ParamSpec

P = ParamSpec("P")

SECONDS = 60


def scenario(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), SECONDS))

    return run


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the scenario ends if it never comes true."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)
