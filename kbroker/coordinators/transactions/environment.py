"""What the transaction coordinator is given: settings, timers, the store, producer ids, the participants. No
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from kbroker.coordinators.timers import Timers
from kbroker.coordinators.transactions.store import TransactionStore
from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction
from kbroker.pending import Pending


class Participants(Protocol):
    """The partitions that take part in transactions."""

    def end(
        self, transaction: Transaction, partitions: Collection[TopicPartition], now_ms: int
    ) -> Pending[frozenset[TopicPartition]]:
        """Tell these partitions how the transaction, which is prepared, was decided.

        The result are those that could not be told and must be told later; the others show it. Telling
        a partition twice does no harm.
        """
        ...

    def show_at_once(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether those of them that can be told show it when `end` returns."""
        ...


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's broker configs of the same names, dots for underscores."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000


@dataclass(slots=True)
class TransactionEnvironment:
    store: TransactionStore
    participants: Participants
    allocate_producer_id: Callable[[], Pending[int]]
    transaction_version: Callable[[], int]
    """The level of the feature transaction.version: how the coordinator itself aborts."""
    settings: TransactionSettings = field(default_factory=TransactionSettings)
    timers: Timers = field(default_factory=Timers)
