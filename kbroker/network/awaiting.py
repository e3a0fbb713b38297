"""Where a Pending meets asyncio: coroutines that wait for one."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, overload

from kbroker.pending import Pending

T = TypeVar("T")


@overload
async def settled(result: Pending[T]) -> T: ...
@overload
async def settled(result: T | Pending[T]) -> T: ...
async def settled(result: Any) -> Any:
    """The value, once it is there, or the failure raised.

    A coroutine that is cancelled meanwhile abandons the Pending.
    """
    if not isinstance(result, Pending):
        return result
    if not result.done:
        arrived = asyncio.Event()
        result.then(lambda _: arrived.set())
        try:
            await arrived.wait()
        except asyncio.CancelledError:
            result.abandon()
            raise
    return result.result()
