"""What a broker keeps for those who publish without Kafka's protocol, from the first of them on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kbroker.operations.partitioning import RoundRobin

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.operations.origins import Origins
    from kbroker.operations.own_producers import OwnProducers
    from kbroker.operations.repeats import Repeats
    from kbroker.operations.transactions.registry import OpenTransactions


class Publishing:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.round_robin = RoundRobin()

    @cached_property
    def own_producers(self) -> OwnProducers:
        from kbroker.operations.own_producers import OwnProducers

        return OwnProducers(self._broker)

    @cached_property
    def transactions(self) -> OpenTransactions:
        from kbroker.operations.transactions.registry import OpenTransactions

        return OpenTransactions(self._broker)

    @cached_property
    def origins(self) -> Origins:
        from kbroker.operations.origins import Origins

        return Origins(self._broker)

    @cached_property
    def repeats(self) -> Repeats:
        from kbroker.operations.repeats import Repeats

        return Repeats(self._broker.budget)

    def close(self) -> None:
        """The broker stops."""
        if "transactions" in self.__dict__:
            self.transactions.close()
