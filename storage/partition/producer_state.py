"""What a log remembers of its producers: sequence numbers, epochs and open transactions.

Per producer id the last five batches are kept, so that a batch sent again is recognised. The rules, for a
batch of a client:

    no state for the producer id          any sequence number is taken
    epoch below the known one             InvalidProducerEpoch
    epoch above the known one             the sequence must start at 0, else OutOfOrderSequence
    same epoch, same sequence range as
      one of the last five batches        a duplicate
    same epoch, next sequence             taken; after 2^31 - 1 comes 0
    same epoch, anything else             OutOfOrderSequence

`check_*` looks and raises, `update_*` changes: between the two the batch is written, so that a failed write
leaves no trace. A transaction's first offset is unstable until its marker is below the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from operator import attrgetter
from typing import NamedTuple

from kbroker.protocol.records import BatchHeader, ControlType, parse_control
from kbroker.protocol.records.batch import CONTROL_BIT, MAX_SEQUENCE, TRANSACTIONAL_BIT
from kbroker.protocol.records.batch_run import BatchRun
from kbroker.storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kbroker.storage.partition.transaction_index import AbortedEntry

MAX_EPOCH = 2**15 - 1
MAX_OFFSET = 2**63 - 1
BATCHES_TO_RETAIN = 5
_last_timestamp = attrgetter("last_timestamp")


class BatchMetadata(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        current_txn_first_offset: int = -1,
        batches: Iterable[BatchMetadata] = (),
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = list(batches)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    aborted: bool


class ProducerStates:
    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # first offset → producer id, in the order of offsets
        self._undecided: dict[int, int] = {}  # first offset → marker's offset, at or above the high watermark
        self.end_offset = 0  # everything below it is in the state

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    # data batches

    def check_data(self, header: BatchHeader) -> BatchMetadata | None:
        """The earlier batch that this one repeats, or None if it may be appended."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        epoch, known_epoch = header.producer_epoch, entry.producer_epoch
        base_sequence = header.base_sequence
        batches = entry.batches
        if epoch == known_epoch:
            last = batches[-1].last_sequence if batches else -1
            if base_sequence != last + 1 and not (base_sequence == 0 and last == MAX_SEQUENCE):
                last_sequence = header.last_sequence
                for batch in batches:
                    if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
                        return batch
                raise OutOfOrderSequence(
                    f"producer {header.producer_id}: sequence {base_sequence} does not follow {last}"
                )
        elif epoch < known_epoch:
            raise InvalidProducerEpoch(
                f"producer {header.producer_id}: epoch {epoch} is below {known_epoch}, the last one seen"
            )
        elif base_sequence != 0 and known_epoch != -1:
            raise OutOfOrderSequence(
                f"producer {header.producer_id}: new epoch {epoch} starts at sequence {base_sequence}"
            )
        if entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
            raise InvalidTransactionState(
                f"producer {header.producer_id} has an open transaction, but the batch is not transactional"
            )
        return None

    def update_data(self, header: BatchHeader, base_offset: int, last_offset: int) -> None:
        producer_id, epoch = header.producer_id, header.producer_epoch
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id, epoch)
        batches = entry.batches
        if entry.producer_epoch != epoch:
            batches.clear()
            entry.producer_epoch = epoch
        elif len(batches) == BATCHES_TO_RETAIN:
            del batches[0]
        timestamp = entry.last_timestamp = header.max_timestamp
        batches.append(
            BatchMetadata(header.base_sequence, header.last_sequence, base_offset, last_offset, timestamp)
        )
        if header.attributes & TRANSACTIONAL_BIT and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id

    def update_run(self, run: BatchRun, base_offset: int) -> None:
        """As `update_data` for each batch of the run."""
        first = run.first
        entry = self._entries.get(first.producer_id)
        if entry is None:
            entry = self._entries[first.producer_id] = ProducerEntry(first.producer_id, first.producer_epoch)
        batches = entry.batches
        if entry.producer_epoch != first.producer_epoch:
            batches.clear()
            entry.producer_epoch = first.producer_epoch
        sequence = first.base_sequence
        for count, timestamp in zip(run.counts, run.timestamps, strict=True):
            last_sequence = (sequence + count - 1) & MAX_SEQUENCE
            batches.append(
                BatchMetadata(sequence, last_sequence, base_offset, base_offset + count - 1, timestamp)
            )
            sequence = (last_sequence + 1) & MAX_SEQUENCE
            base_offset += count
        del batches[:-BATCHES_TO_RETAIN]
        entry.last_timestamp = run.timestamps[-1]

    # transaction markers

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        entry = self._entries.get(producer_id)
        if entry is None:
            return
        known = entry.producer_epoch
        # From transaction version 2 on the coordinator raises the epoch before it writes the marker, so a
        # marker of the epoch that the log knows belongs to an earlier transaction, or comes a second time.
        earlier = transaction_version >= 2 and producer_epoch == known != MAX_EPOCH
        if producer_epoch < known or (earlier and entry.current_txn_first_offset >= 0):
            raise InvalidProducerEpoch(
                f"producer {producer_id}: marker of epoch {producer_epoch}, the last one seen is {known}"
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {producer_id}: marker of coordinator epoch {coordinator_epoch}, "
                f"the last one seen is {entry.coordinator_epoch}"
            )

    def update_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        aborted: bool,
    ) -> CompletedTransaction | None:
        """End the producer's open transaction; None if it had none here."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id, producer_epoch)
        if entry.producer_epoch != producer_epoch:
            entry.batches.clear()
            entry.producer_epoch = producer_epoch
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        first_offset = entry.current_txn_first_offset
        if first_offset < 0:
            return None
        entry.current_txn_first_offset = -1
        self._ongoing.pop(first_offset, None)
        self._undecided[first_offset] = offset
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def learn(
        self, batch: memoryview, header: BatchHeader, base_offset: int, last_offset: int
    ) -> AbortedEntry | None:
        """Take in a batch that is in the log, whoever wrote it; returns the transaction that it aborts."""
        if not header.attributes & CONTROL_BIT:
            self.update_data(header, base_offset, last_offset)
            return None
        marker = (
            parse_control(batch) if header.record_count else None
        )  # compaction empties old control batches
        if marker is None:
            return None
        completed = self.update_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            base_offset,
            header.max_timestamp,
            aborted=marker.type == ControlType.ABORT,
        )
        if completed is None or not completed.aborted:
            return None
        # The last stable offset once this transaction is decided.
        stable = next(iter(self._ongoing), completed.last_offset + 1)
        return AbortedEntry(completed.producer_id, completed.first_offset, completed.last_offset, stable)

    # the first unstable offset

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset of an open transaction, or of one whose marker is not below the high watermark."""
        if self._undecided:
            decided = [first for first, last in self._undecided.items() if last < high_watermark]
            for first in decided:
                del self._undecided[first]
            if self._undecided:
                return min(*self._undecided, *self._ongoing, MAX_OFFSET)
        return next(iter(self._ongoing), None)

    @property
    def has_unstable(self) -> bool:
        return bool(self._ongoing or self._undecided)

    # the whole

    def load(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Replace the state by a snapshot taken at `end_offset`."""
        self._entries = {entry.producer_id: entry for entry in entries}
        open_transactions = sorted(
            (entry.current_txn_first_offset, entry.producer_id)
            for entry in self._entries.values()
            if entry.current_txn_first_offset >= 0
        )
        self._ongoing = dict(open_transactions)
        self._undecided = {}
        self.end_offset = end_offset

    def remove_oldest(self, count: int) -> None:
        """Forget the producers that were silent longest, but for those with an open transaction."""
        idle = [entry for entry in self._entries.values() if entry.current_txn_first_offset < 0]
        for entry in nsmallest(count, idle, key=_last_timestamp):
            del self._entries[entry.producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        expired = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]
