"""Coroutines that mostly end without a wait: they are run at once, and get a task where they first wait.

Until then they are in no task: what asks for the present one (a timeout, a task group) must move into one
before, by `in_a_task`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any

_tasks: set[asyncio.Task[None]] = set()  # the loop itself holds on to none


def begin(work: Coroutine[Any, Any, None]) -> None:
    try:
        waited_for = work.send(None)
    except StopIteration:
        return
    begin_in_a_task(_rest(work, waited_for))


def begin_in_a_task(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def in_a_task() -> None:
    """From here on there is one."""
    await asyncio.sleep(0)


@coroutine
def _rest(work: Coroutine[Any, Any, None], waited_for: Any) -> Generator[Any, None, None]:
    """What follows the first wait."""
    step: Callable[[], Any]
    while True:
        try:
            yield waited_for
        except BaseException as error:
            step = partial(work.throw, error)
        else:
            step = partial(work.send, None)
        try:
            waited_for = step()
        except StopIteration:
            return
