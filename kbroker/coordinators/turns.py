"""Sequences of steps that share a key, run one at a time.

`Turns` runs the sequences (`kbroker.pending.Steps`) of a key one after the other, in the order they came.

Invariants: a sequence once begun runs to its end, whether or not somebody still waits for its result; the
next of the same key begins only after everybody was told the result of the one before it, and begins even if
telling it failed. What a sequence leaves as its follow-up comes right after that, before all that wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from kbroker.pending import Pending, Steps, run

T = TypeVar("T")


class Turns:
    def __init__(self) -> None:
        self._lines: dict[Hashable, deque[Callable[[], Pending[Any]]]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether a sequence of this key is under way."""
        return key in self._lines

    def take(self, key: Hashable, begin: Callable[[], Steps[T]]) -> Pending[T]:
        """Run the sequence that `begin` makes, once those of this key before it are done."""
        answer: Pending[T] = Pending()

        def start() -> Pending[T]:
            result = run(begin())
            result.then(answer.follow)
            return result

        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque((start,))
            self._serve(key)
        else:
            line.append(start)
        return answer

    def follow_up(self, key: Hashable, begin: Callable[[], Steps[Any]]) -> None:
        """From within a sequence of this key: what is to be done as soon as its result was told."""
        self._lines[key].appendleft(lambda: run(begin()))

    def _serve(self, key: Hashable) -> None:
        line = self._lines[key]
        while line:
            result = line.popleft()()
            if not result.done:
                result.then(lambda _: self._serve(key))
                return
        del self._lines[key]
