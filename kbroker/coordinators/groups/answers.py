"""Answers that wait until a step of a state machine is complete.

Settling a Pending may run the client's next request at once. So a group collects its answers while it changes
and delivers them when it is consistent again.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from kbroker.coordinators.groups.errors import GroupError
from kbroker.pending import Pending

T = TypeVar("T")


class Answers:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[Pending[Any], Any]] = deque()

    def add(self, pending: Pending[T], result: T | GroupError) -> None:
        self._waiting.append((pending, result))

    def deliver(self) -> None:
        while self._waiting:
            pending, result = self._waiting.popleft()
            if isinstance(result, GroupError):
                pending.fail(result)
            else:
                pending.resolve(result)
