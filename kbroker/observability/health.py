"""Whether the broker may be sent work. Each thing that it cannot do without is a check of its own.

A check that hangs, on a disk that does not answer say, is not begun a second time, and what was found counts
for a moment: asking often costs nothing. An answer never takes longer than ``LONGEST_MS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker

LONGEST_MS = 2000
_COUNTS_MS = 1000

Problems = dict[str, str | None]
"""What is wrong, by check; None: nothing."""


class Health:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._looked = (
            _Look("catalog", broker.catalog.check, broker.clock, self._seen),
            _Look("disk", broker.logs.check_writable, broker.clock, self._seen),
        )
        self._asked: list[Pending[None]] = []
        self.draining = False
        """It is about to stop: who sends it work shall send it elsewhere."""

    def readiness(self) -> Pending[Problems]:
        """What each check finds."""
        for look in self._looked:
            look.begin()
        answer: Pending[Problems] = Pending()
        if not self._is_looking():
            answer.resolve(self._found())
            return answer
        seen: Pending[None] = Pending()
        self._asked.append(seen)
        cancel = self._broker.scheduler.after(LONGEST_MS, lambda: self._answer(seen))

        def tell(_: Pending[None]) -> None:
            cancel()
            answer.resolve(self._found())

        seen.then(tell)
        return answer

    def _is_looking(self) -> bool:
        return any(look.running for look in self._looked)

    def _seen(self) -> None:
        if not self._is_looking():
            for seen in list(self._asked):
                self._answer(seen)

    def _answer(self, seen: Pending[None]) -> None:
        self._asked.remove(seen)
        seen.resolve(None)

    def _found(self) -> Problems:
        held = self._broker.logs.held
        return {
            "recovered": None if held is None else f"no log takes records: {held}",
            **{look.name: look.problem for look in self._looked},
            "draining": "the broker is stopping" if self.draining else None,
        }


class _Look:
    """One check that takes its time."""

    def __init__(
        self,
        name: str,
        check: Callable[[], Pending[None]],
        clock: Callable[[], int],
        ended: Callable[[], None],
    ) -> None:
        self.name = name
        self.running = False
        self._check = check
        self._clock = clock
        self._ended = ended
        self._found: str | None = None
        self._since_ms = -_COUNTS_MS

    def begin(self) -> None:
        now_ms = self._clock()
        if self.running or now_ms - self._since_ms < _COUNTS_MS:
            return
        self.running = True
        self._since_ms = now_ms
        self._check().then(self._end)

    @property
    def problem(self) -> str | None:
        if not self.running:
            return self._found
        waited_ms = self._clock() - self._since_ms
        return self._found if waited_ms < LONGEST_MS else f"no answer for {waited_ms} ms"

    def _end(self, result: Pending[None]) -> None:
        self.running = False
        self._since_ms = self._clock()
        try:
            result.result()
            self._found = None
        except OSError as error:
            self._found = f"it cannot be written: {error.strerror or error}"
        except Exception as error:
            self._found = str(error)
        self._ended()
