"""A transaction coordinator in simulated time: a store and partitions that answer when a test lets them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from kbroker.catalog.memory_transactions import MemoryTransactionStore
from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
from kbroker.coordinators.transactions.environment import TransactionEnvironment, TransactionSettings
from kbroker.coordinators.transactions.transaction import (
    ProducerIdAndEpoch,
    TopicPartition,
    Transaction,
    TransactionState,
)
from kbroker.pending import Pending

ID = "transactional-id"
T0 = TopicPartition("topic", 0)
T1 = TopicPartition("topic", 1)


class SlowStore(MemoryTransactionStore):
    """Writes at once; or, while `held`, when the test says so, in their order; or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.held = False
        self.waiting: list[tuple[Transaction | str, Pending[None]]] = []
        self.history: list[TransactionState] = []

    def save(self, transaction: Transaction) -> Pending[None]:
        return self._write(transaction)

    def delete(self, transactional_id: str) -> Pending[None]:
        return self._write(transactional_id)

    def _write(self, what: Transaction | str) -> Pending[None]:
        written: Pending[None] = Pending()
        self.waiting.append((what, written))
        if not self.held:
            self.finish()
        return written

    def finish(self, count: int | None = None, error: Exception | None = None) -> None:
        """Let the first `count` writes, or all, succeed or fail."""
        count = len(self.waiting) if count is None else count
        while count > 0 and self.waiting:
            count -= 1
            what, written = self.waiting.pop(0)
            if error is not None:
                written.fail(error)
                continue
            if isinstance(what, Transaction):
                super().save(what)
                self.history.append(what.state)
            else:
                super().delete(what)
            written.resolve(None)

    def crash(self) -> None:
        """What was not written never will be."""
        self.waiting.clear()
        self.held = False


class Partitions:
    """Participants that note what they are told; those in `failing` cannot be told."""

    def __init__(self) -> None:
        self.told: list[tuple[TopicPartition, Transaction]] = []
        self.failing: set[TopicPartition] = set()
        self.held: list[Pending[frozenset[TopicPartition]]] | None = None

    def end(
        self, transaction: Transaction, partitions: Collection[TopicPartition], now_ms: int
    ) -> Pending[frozenset[TopicPartition]]:
        left = self.failing.intersection(partitions)
        self.told += [(each, transaction) for each in sorted(partitions) if each not in left]
        result: Pending[frozenset[TopicPartition]] = Pending()
        if self.held is None:
            result.resolve(frozenset(left))
        else:
            self.held.append(result)
        return result

    def show_at_once(self, partitions: Collection[TopicPartition]) -> bool:
        return self.held is None

    def markers(self, partition: TopicPartition) -> list[tuple[str, int]]:
        """The partition's markers: which way, and at which producer epoch."""
        return [
            ("commit" if transaction.commits else "abort", transaction.producer_epoch)
            for told, transaction in self.told
            if told == partition
        ]


class Simulation:
    """The coordinator, its surroundings, and the time."""

    def __init__(self, *, version: int = 2, **settings: int) -> None:
        self.now_ms = 1_000_000
        self.version = version
        self.store = SlowStore()
        self.partitions = Partitions()
        self.settings = TransactionSettings(**settings)
        self.next_producer_id = 100
        self.coordinator = self.start()

    def start(self) -> TransactionCoordinator:
        """A coordinator on the same store, as after a restart."""
        self.coordinator = TransactionCoordinator(
            TransactionEnvironment(
                store=self.store,
                participants=self.partitions,
                allocate_producer_id=self._allocate,
                transaction_version=lambda: self.version,
                settings=self.settings,
            )
        )
        self.coordinator.load(self.now_ms)
        return self.coordinator

    def _allocate(self) -> Pending[int]:
        self.next_producer_id += 1
        return Pending.resolved(self.next_producer_id)

    def pass_time(self, ms: int) -> None:
        """Let the time pass, firing what is due on the way."""
        end = self.now_ms + ms
        while (deadline := self.coordinator.next_deadline()) is not None and deadline <= end:
            self.now_ms = max(deadline, self.now_ms)
            self.coordinator.tick(self.now_ms)
        self.now_ms = end

    @property
    def transaction(self) -> Transaction:
        return self.coordinator.describe(ID)

    # requests; those without `begin_` expect the answer at once

    def begin_init(
        self, expected: ProducerIdAndEpoch | None = None, timeout_ms: int = 60_000
    ) -> Pending[ProducerIdAndEpoch]:
        return self.coordinator.init_producer_id(ID, timeout_ms, expected, self.now_ms)

    def init(
        self, expected: ProducerIdAndEpoch | None = None, timeout_ms: int = 60_000
    ) -> ProducerIdAndEpoch:
        return self.begin_init(expected, timeout_ms).result()

    def begin_add(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, version: int = 0
    ) -> Pending[None]:
        return self.coordinator.add_partitions(ID, producer, partitions or (T0,), version, self.now_ms)

    def add(self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, version: int = 0) -> None:
        self.begin_add(producer, *partitions, version=version).result()

    def begin_end(
        self, producer: ProducerIdAndEpoch, *, commit: bool = True, version: int = 0
    ) -> Pending[ProducerIdAndEpoch]:
        return self.coordinator.end_transaction(
            ID, producer, commit=commit, version=version, now_ms=self.now_ms
        )

    def end(
        self, producer: ProducerIdAndEpoch, *, commit: bool = True, version: int = 0
    ) -> ProducerIdAndEpoch:
        return self.begin_end(producer, commit=commit, version=version).result()

    def commit(self, producer: ProducerIdAndEpoch, *, version: int = 0) -> ProducerIdAndEpoch:
        return self.end(producer, commit=True, version=version)

    def abort(self, producer: ProducerIdAndEpoch, *, version: int = 0) -> ProducerIdAndEpoch:
        return self.end(producer, commit=False, version=version)

    def set_state(self, **fields: object) -> Transaction:
        """Make a state that would take long to come to: stored, and loaded."""
        producer: dict[str, object] = {
            "transactional_id": ID,
            "producer_id": 100,
            "producer_epoch": 0,
            "timeout_ms": 60_000,
            "last_update_ms": self.now_ms,
        }
        transaction = Transaction(**{**producer, **fields})  # type: ignore[arg-type]
        self.store.save(transaction)
        self.start()
        return transaction


def by_partition(partitions: Partitions) -> dict[TopicPartition, list[Transaction]]:
    told: defaultdict[TopicPartition, list[Transaction]] = defaultdict(list)
    for partition, transaction in partitions.told:
        told[partition].append(transaction)
    return told
