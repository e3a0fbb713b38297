"""Transactional producers of the broker's own, for those who publish all or nothing without Kafka's protocol.

Their transactional ids are numbered, and a number is used again: what a broker that was killed has left open
under it is aborted by the next use, or by its time-out. So many transactions run at a time; others wait.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.operations.transactions.producer import take_over
from kbroker.pending import Pending, wait

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

PREFIX: Final = "__kbroker-publish"
_MOST: Final = 64
_TIMEOUT_MS: Final = 60_000


class OwnProducer(NamedTuple):
    number: int
    transactional_id: str
    producer: ProducerIdAndEpoch
    used_ms: int


class OwnProducers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._prefix = f"{PREFIX}-{broker.cluster.node_id}"
        self._free: list[OwnProducer] = []  # the one used last first: few are known to the coordinator
        self._numbers = list(range(_MOST - 1, -1, -1))  # without a producer
        self._waiting: deque[Pending[None]] = deque()

    def take(self, resources: Resources) -> Steps[OwnProducer]:
        """One that nobody else uses until it is given back, or given up."""
        while not self._free and not self._numbers:
            turn: Pending[None] = Pending()
            self._waiting.append(turn)
            yield from wait(turn)
        while self._free:
            own = self._free.pop()
            if self._broker.clock() - own.used_ms < self._lasts_ms:
                return own
            self._numbers.append(own.number)
        number = self._numbers.pop()
        try:
            transactional_id = f"{self._prefix}-{number}"
            timeout_ms = min(_TIMEOUT_MS, self._broker.settings["transaction.max.timeout.ms"])
            producer = yield from take_over(resources, transactional_id, timeout_ms)
        except BaseException:
            self._numbers.append(number)
            self._next()
            raise
        return OwnProducer(number, transactional_id, producer, self._broker.clock())

    def give_back(self, used: OwnProducer, producer: ProducerIdAndEpoch) -> None:
        """``producer``: what it goes on with."""
        self._free.append(used._replace(producer=producer, used_ms=self._broker.clock()))
        self._next()

    def give_up(self, used: OwnProducer) -> None:
        """Nobody knows how far it got: who takes its number begins anew."""
        self._numbers.append(used.number)
        self._next()

    @property
    def _lasts_ms(self) -> int:
        """How long an unused producer is certainly known to the coordinator."""
        expiration_ms: int = self._broker.settings["transactional.id.expiration.ms"]
        return expiration_ms // 2

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.abandoned:
                turn.resolve(None)
                return
