"""What a test wants to go wrong, and what it wants to know: injected errors, delays, the requests that came.

Nothing of this exists in a broker without a control port. Rules are tried in the order they were made; a rule
with a number of times is used up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.requests.apis import APIS
from kbroker.requests.gate import Head, Verdict

if TYPE_CHECKING:
    from kbroker.scheduler import Scheduler

_REMEMBERED = 10_000  # requests

_NAMES = {api.name for api in APIS}


class FaultError(ValueError):
    """A rule that makes no sense; the message says why."""


class SeenRequest(NamedTuple):
    api: str
    version: int
    client_id: str | None


class _Rule:
    def __init__(
        self,
        api: str | None,
        client_id: str | None,
        times: int | None,
        error: ErrorCode | None,
        delay_ms: int,
    ) -> None:
        self.api = api
        self.client_id = client_id
        self.times = times
        self.error = error
        self.delay_ms = delay_ms

    def applies(self, head: Head) -> bool:
        if self.times == 0:
            return False
        if self.api is not None and self.api != head.api.name:
            return False
        return self.client_id is None or self.client_id == head.client_id

    def use(self) -> None:
        if self.times is not None:
            self.times -= 1


class Faults:
    """The gate of a broker with a control port (kbroker/requests/gate.py)."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._rules: list[_Rule] = []
        self._delayed: dict[Pending[None], Callable[[], None]] = {}
        self.requests: deque[SeenRequest] = deque(maxlen=_REMEMBERED)

    def fail(
        self, error: str, api: str | None = None, times: int | None = 1, client_id: str | None = None
    ) -> None:
        """Answer the next ``times`` requests (None: all from now on) with this error code."""
        if error not in ErrorCode.__members__:
            raise FaultError(f"{error} is not one of Kafka's error codes")
        self._rules.append(_Rule(_known(api), client_id, times, ErrorCode[error], 0))

    def delay(
        self, ms: int, api: str | None = None, times: int | None = None, client_id: str | None = None
    ) -> None:
        """Let requests wait before they are executed."""
        self._rules.append(_Rule(_known(api), client_id, times, None, ms))

    def clear(self) -> None:
        """No more faults, and no more waiting for those there were. What was seen stays."""
        self._rules.clear()
        for go_on in list(self._delayed.values()):
            go_on()

    # the gate

    @property
    def is_open(self) -> bool:
        return not self._rules

    def judge(self, head: Head) -> Verdict | None:
        """What the rules make of a request."""
        self._seen(head)
        delay_ms = 0
        for rule in self._rules:
            if not rule.applies(head):
                continue
            rule.use()
            if rule.error is not None:
                return Verdict(self._wait(delay_ms), rule.error)
            delay_ms += rule.delay_ms
        wait = self._wait(delay_ms)
        return None if wait is None else Verdict(wait, None)

    def passed(self, head: Head, requests: int) -> None:
        for _ in range(requests):
            self._seen(head)

    def _seen(self, head: Head) -> None:
        self.requests.append(SeenRequest(head.api.name, head.version, head.client_id))

    def _wait(self, delay_ms: int) -> Pending[None] | None:
        if delay_ms <= 0:
            return None

        def abandoned() -> None:
            cancel()
            del self._delayed[wait]

        def go_on() -> None:
            cancel()
            del self._delayed[wait]
            wait.resolve(None)

        wait: Pending[None] = Pending(abandoned)
        cancel = self._scheduler.after(delay_ms, go_on)
        self._delayed[wait] = go_on
        return wait


def _known(api: str | None) -> str | None:
    if api is not None and api not in _NAMES:
        raise FaultError(f"{api} is not an API of this broker")
    return api
