"""What a test wants to go wrong, and what it wants to know: injected errors, delays, the requests that came.

Nothing of this exists in a broker without a control port. Rules are tried in the order they were made; a rule
with a number of times is used up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.requests.apis import APIS
from kbroker.requests.dispatch import Request, parse

if TYPE_CHECKING:
    from kbroker.broker import Broker

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

    def applies(self, request: Request) -> bool:
        if self.times == 0:
            return False
        if self.api is not None and self.api != request.endpoint.name:
            return False
        return self.client_id is None or self.client_id == request.context.client_id

    def use(self) -> None:
        if self.times is not None:
            self.times -= 1


class Faults:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rules: list[_Rule] = []
        self._delayed: dict[Pending[Any], Callable[[], None]] = {}
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

    def run(self, request: Request, frame: memoryview) -> Any:
        """Like ``request.run``, with what the rules make of it."""
        context = request.context
        self.requests.append(SeenRequest(request.endpoint.name, context.api_version, context.client_id))
        delay_ms = 0
        for rule in self._rules:
            if not rule.applies(request):
                continue
            rule.use()
            if rule.error is not None:
                return self._after(delay_ms, request, frame, rule.error)
            delay_ms += rule.delay_ms
        return self._after(delay_ms, request, frame, None)

    def _after(self, delay_ms: int, request: Request, frame: memoryview, error: ErrorCode | None) -> Any:
        if delay_ms <= 0:
            return request.run(self._broker) if error is None else request.refused(error)
        kept = memoryview(bytearray(frame))  # the frame dies when this returns
        result: Pending[Any] = Pending()

        def go_on() -> None:
            del self._delayed[result]
            cancel()
            if result.abandoned:
                return
            try:
                again = parse(kept, request.context.peer, self._broker.clock())
                answer = again.run(self._broker) if error is None else again.refused(error)
            except Exception as failure:
                result.fail(failure)
                return
            if isinstance(answer, Pending):
                answer.then(result.follow)
            else:
                result.resolve(answer)

        cancel = self._broker.scheduler.after(delay_ms, go_on)
        self._delayed[result] = go_on
        return result


def _known(api: str | None) -> str | None:
    if api is not None and api not in _NAMES:
        raise FaultError(f"{api} is not an API of this broker")
    return api
