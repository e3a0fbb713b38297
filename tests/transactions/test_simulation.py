"""Any order of requests, writes that come late or fail, full disks, passing time and crashes: transactions
stay whole.

Several producers share two transactional ids, so most of them are zombies most of the time. They behave as
clients do: one request at a time, sent again when the broker died, abort or start anew after an error. The
broker is whole, in memory; only what the coordinator stores is in the hands of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from kbroker.protocol.records import ControlType, iter_batches, iter_records, parse_control
from kbroker.storage.errors import DiskFull
from kbroker.storage.interface import Slice
from kbroker.storage.memory import MemoryLog
from tests.handlers.conftest import Cluster

from .broker_support import TransactionalClient, fetched_offset, produce_error, use_slow_store

PARTITIONS = 3
CLIENTS = 4
GROUP = "group"
SETTINGS = {"node.id": "1"}


class FullLog(MemoryLog):
    """Takes no markers while `full`."""

    full = False

    def append_control(self, *arguments: Any, **more: Any) -> Any:
        if self.full:
            raise DiskFull("no room")
        return super().append_control(*arguments, **more)


class Client(TransactionalClient):
    """One producer: what it wrote in which of its transactions, and how they were answered to have ended."""

    def __init__(self, cluster: Cluster, name: str, transactional_id: str, version: int) -> None:
        super().__init__(cluster, transactional_id)
        self.name = name
        self.version = version
        self.number = 0  # of its transaction
        self.open = False
        self.broken = False  # its transaction can only be aborted
        self.ready = False
        self.waiting: Pending[Any] | None = None
        self.again: Callable[[], None] | None = None  # sends what is waiting once more
        self.outcomes: dict[str, bool] = {}  # transaction → committed
        self.offsets: dict[str, list[tuple[int, int]]] = {}  # transaction → (time it was sent, offset)

    @property
    def transaction(self) -> str:
        return f"{self.name}.{self.number}"

    def ask(self, send: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Send, and go on with the answer, whenever it comes."""

        def go() -> None:
            answer = send()
            if isinstance(answer, Pending) and not answer.done:
                self.waiting = answer
                answer.then(lambda settled: received(settled.result()))
            else:
                received(answer.result() if isinstance(answer, Pending) else answer)

        def received(answer: Any) -> None:
            self.waiting = self.again = None
            then(answer)

        self.again = go
        go()

    # requests

    def initialize(self) -> None:
        def initialized(answer: Any) -> None:
            self.ready = not answer.error_code
            if self.ready:
                self.producer = type(self.producer)(answer.producer_id, answer.producer_epoch)
                self.number += 1
                self.open = self.broken = False

        self.ask(
            lambda: self.cluster.send(InitProducerIdRequest(self.transactional_id, 30_000), 4), initialized
        )

    def write(self, partition: int) -> None:
        key = ("topic", partition, self.producer.producer_epoch)
        sequence = self._sequences.get(key, 0)
        transaction = self.transaction

        def produce() -> Any:
            self._sequences[key] = sequence
            return self.produce(
                "topic", transaction.encode(), partition=partition, version=12 if self.version == 2 else 11
            )

        def produced(answer: Any) -> None:
            code = produce_error(answer)
            if code:
                self._sequences[key] = sequence
                self.broken = self.broken or code not in RETRIED
            self.open = True

        if self.version == 2:
            self.ask(produce, produced)
            return

        def added(answer: Any) -> None:
            code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code == ErrorCode.NONE:
                self.open = True
                self.ask(produce, produced)
            else:
                self.broken = self.broken or code not in RETRIED

        self.ask(lambda: self.add("topic", partition), added)

    def commit_group(self, offset: int) -> None:
        transaction = self.transaction

        def committed(answer: Any) -> None:
            code = answer.topics[0].partitions[0].error_code
            if code == ErrorCode.NONE:
                self.open = True
                self.offsets.setdefault(transaction, []).append((offset, offset))
            else:
                self.broken = self.broken or code not in RETRIED

        if self.version == 2:
            self.ask(lambda: self.commit_offset(GROUP, "topic", offset, version=5), committed)
            return

        def added(answer: Any) -> None:
            if answer.error_code == ErrorCode.NONE:
                self.open = True
                self.ask(lambda: self.commit_offset(GROUP, "topic", offset, version=4), committed)
            else:
                self.broken = self.broken or answer.error_code not in RETRIED

        self.ask(lambda: self.add_offsets(GROUP), added)

    def finish(self, *, commit: bool) -> None:
        transaction = self.transaction

        def ended(answer: Any) -> None:
            if answer.error_code == ErrorCode.NONE:
                self.outcomes[transaction] = commit
                self.ended(answer)
                self.number += 1
                self.open = self.broken = False
            elif answer.error_code not in RETRIED:
                self.ready = False

        self.ask(lambda: self.end(commit=commit, version=5 if self.version == 2 else 4), ended)


RETRIED = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    )
)


# Writes and commits are what most of them do most of the time.
ACTIONS = st.tuples(
    st.integers(0, CLIENTS - 1),
    st.sampled_from(("0", "1", "2", "0", "1", "2", "commit", "commit", "abort", "offsets", "initialize")),
    st.sampled_from(
        ("written", "written", "written", "waiting", "waiting", "failed")
    ),  # what is to be stored
)


class Transactions(RuleBasedStateMachine):
    @initialize(versions=st.tuples(*[st.sampled_from((1, 2))] * CLIENTS))
    def start(self, versions: tuple[int, ...]) -> None:
        self.cluster = Cluster(SETTINGS)
        self.cluster.create("topic", PARTITIONS)
        for partition in range(PARTITIONS):
            self.log(partition).__class__ = FullLog
        self.store = use_slow_store(self.cluster)
        self.clients = [
            Client(self.cluster, f"client {number}", f"id {number % 2}", version)
            for number, version in enumerate(versions)
        ]
        self.offset = 0

    def log(self, partition: int) -> Any:
        return self.cluster.broker.find_log("topic", partition)

    # what clients do

    @rule(actions=st.lists(ACTIONS, min_size=5, max_size=20))
    def clients_act(self, actions: list[tuple[int, str, str]]) -> None:
        for number, action, writes in actions:
            if writes != "waiting":
                self.store.finish(error=OSError("no space") if writes == "failed" else None)
            client = self.clients[number]
            if client.waiting is not None:
                continue
            if action == "initialize" or not client.ready:
                client.initialize()
            elif client.broken or action == "abort":
                if client.open or client.broken:
                    client.finish(commit=False)
            elif action == "commit":
                if client.open:
                    client.finish(commit=True)
            elif action == "offsets":
                self.offset += 1
                client.commit_group(self.offset)
            else:
                client.write(int(action))

    # what happens around them

    @rule(held=st.sampled_from((True, True, False)))
    def hold_writes(self, held: bool) -> None:
        self.store.held = held
        if not held:
            self.store.finish()

    @rule(count=st.integers(1, 3))
    def finish_some_writes(self, count: int) -> None:
        self.store.finish(count)

    @rule(partition=st.integers(0, PARTITIONS - 1), full=st.booleans())
    def fill_disk(self, partition: int, full: bool) -> None:
        self.log(partition).full = full

    @rule(ms=st.sampled_from((1, 1500, 12_000, 45_000)))
    def pass_time(self, ms: int) -> None:
        end = self.cluster.now_ms + ms
        coordinator = self.cluster.broker.transactions
        while (deadline := coordinator.next_deadline()) is not None and deadline <= end:
            self.cluster.now_ms = max(self.cluster.now_ms, deadline)
            coordinator.tick(self.cluster.now_ms)
        self.cluster.now_ms = end

    @rule()
    def crash(self) -> None:
        self.store.crash()
        for client in self.clients:
            if client.waiting is not None:
                client.waiting.abandon()
                client.waiting = None
        self.cluster.broker = self.cluster.start(SETTINGS)
        use_slow_store(self.cluster, self.store)
        for client in self.clients:
            if client.again is not None:
                client.again()

    # what must hold

    @invariant()
    def offsets_are_in_order(self) -> None:
        for partition in range(PARTITIONS):
            log = self.log(partition)
            assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for partition in range(PARTITIONS):
            self.log(partition).full = False
        for _ in range(5):
            self.hold_writes(held=False)
            self.pass_time(45_000)
        resolved = [self._resolved(partition) for partition in range(PARTITIONS)]
        self._nothing_hangs()
        self._transactions_are_whole(resolved)
        self._offsets_belong_to_them(resolved)
        self.cluster.catalog.close()

    def _resolved(self, partition: int) -> list[tuple[str, bool]]:
        """The transaction of every record, in order, and whether the next marker of its producer commits."""
        found = self.log(partition).read(0, 1 << 30)
        assert isinstance(found, Slice)
        data = b"".join(bytes(buffer) for buffer in found.buffers)
        open_: dict[int, list[int]] = {}
        records: list[tuple[str, bool | None]] = []
        for position, header in iter_batches(data):
            batch = memoryview(data)[position : position + header.size_bytes]
            if header.is_control:
                marker = parse_control(batch)
                assert marker is not None
                for index in open_.pop(header.producer_id, ()):
                    records[index] = (records[index][0], marker.type == ControlType.COMMIT)
            else:
                for record in iter_records(batch):
                    open_.setdefault(header.producer_id, []).append(len(records))
                    records.append(((record.value or b"").decode(), None))
        assert not open_, f"never ended: {[records[i] for indexes in open_.values() for i in indexes]}"
        return [(name, bool(committed)) for name, committed in records]

    def _nothing_hangs(self) -> None:
        for partition in range(PARTITIONS):
            log = self.log(partition)
            assert log.last_stable_offset == log.high_watermark
        for transaction in self.cluster.broker.transactions.list_transactions((), (), -1, 0):
            assert transaction.is_idle

    def _transactions_are_whole(self, resolved: list[list[tuple[str, bool]]]) -> None:
        outcomes: dict[str, bool] = {}
        for records in resolved:
            for name, committed in records:
                assert outcomes.setdefault(name, committed) == committed, f"{name} is half committed"
        for client in self.clients:
            for name, committed in client.outcomes.items():
                if name in outcomes:
                    assert outcomes[name] == committed, f"{name} was answered otherwise"

    def _offsets_belong_to_them(self, resolved: list[list[tuple[str, bool]]]) -> None:
        shown = {name: committed for records in resolved for name, committed in records}
        certain, possible = [], {-1}
        for client in self.clients:
            for name, sent in client.offsets.items():
                committed = client.outcomes.get(name, shown.get(name))
                if committed:
                    certain.append(max(sent))
                if committed is not False:
                    possible.update(offset for _, offset in sent)
        code, offset = fetched_offset(self.cluster, GROUP, "topic", require_stable=True)
        assert code == ErrorCode.NONE
        assert offset in possible
        if certain:
            assert offset >= max(certain)[1]


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
