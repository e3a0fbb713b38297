"""Groups of every type, transactions, and how far behind in time consumers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isnan, nan
from typing import TYPE_CHECKING

from kbroker.observability.families import (
    COUNTER,
    GAUGE,
    Family,
    Number,
    Piece,
    value,
    values,
)
from kbroker.observability.group_series import LABELS, Chunk, GroupLayout, groups_of
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.store import TopicPartition
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.observability.exposition import Exposition


class NextRecords:
    """The timestamps of the records that groups read next, kept by offset."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[str, dict[TopicPartition, tuple[int, int]]] = {}

    def seconds_behind(self, chunk: Chunk) -> Iterator[Pending[int] | list[float]]:
        """At last a list of them; what is to be waited for before. NaN: a log cannot be read."""
        known = self._known.setdefault(chunk.group_id, {})
        now_ms = self._broker.clock()
        found = []
        for at, offset, lag in zip(chunk.at, chunk.offsets, chunk.lags, strict=True):
            if lag <= 0:
                found.append(nan if lag else 0.0)
                continue
            next_record = known.get(at)
            if next_record is None or next_record[0] != offset:
                try:
                    timestamp = self._timestamp(at, offset)
                    if isinstance(timestamp, Pending):
                        yield timestamp
                        timestamp = timestamp.result()
                except (ApiError, OSError, StorageError):
                    timestamp = -1
                next_record = known[at] = offset, timestamp
            timestamp = next_record[1]
            found.append(max(now_ms - timestamp, 0) / 1000 if timestamp >= 0 else nan)
        yield found

    def _timestamp(self, at: TopicPartition, offset: int) -> int | Pending[int]:
        log = self._broker.find_log(at.topic, at.partition)
        offset = max(offset, log.log_start_offset)
        return log.timestamp_of(offset) if offset < log.high_watermark else self._broker.clock()

    def keep(self, group_ids: set[str]) -> None:
        if len(self._known) > len(group_ids):
            self._known = {group: known for group, known in self._known.items() if group in group_ids}


def _lag_seconds(exposition: Exposition, family: Family) -> Iterator[Piece]:
    layout, next_records = exposition.kept(GroupLayout), exposition.kept(NextRecords)
    yield from layout.read(exposition)
    for chunk in layout.chunks:
        for found in next_records.seconds_behind(chunk):
            if isinstance(found, Pending):
                yield found
            else:
                yield chunk.text(family.name, ["NaN" if isnan(each) else each for each in found])
    next_records.keep({chunk.group_id for chunk in layout.chunks})
    exposition.leave_out(family, layout.left_out)


def _by_state(broker: Broker) -> Iterator[tuple[tuple[str, ...], Number]]:
    groups = groups_of(broker)
    if groups is not None:
        counts = Counter((group.type, str(group.state)) for group in groups.groups.values())
        yield from sorted(counts.items())


def _rebalances(broker: Broker) -> Iterator[tuple[tuple[str, ...], Number]]:
    groups = groups_of(broker)
    if groups is not None:
        for kind, count in sorted(groups.environment.rebalances.items()):
            yield (kind,), count


def _coordinator(broker: Broker) -> TransactionCoordinator | None:
    return broker.__dict__.get("transactions")


def _open_transactions(broker: Broker) -> Iterator[tuple[tuple[str, ...], Number]]:
    coordinator = _coordinator(broker)
    if coordinator is not None:
        counts = Counter(str(transaction.state) for transaction in coordinator.open_transactions())
        for state, count in sorted(counts.items()):
            yield (state,), count


def _oldest_transaction(broker: Broker) -> float:
    coordinator = _coordinator(broker)
    found = [] if coordinator is None else coordinator.open_transactions()
    begun = min((transaction.start_ms for transaction in found if transaction.start_ms >= 0), default=None)
    return 0.0 if begun is None else max(broker.clock() - begun, 0) / 1000


FAMILIES = (
    Family(
        "kbroker_consumergroup_lag_seconds",
        GAUGE,
        "How old the record is that a group would read next; 0 where it has read all.",
        LABELS,
        _lag_seconds,
    ),
    values("kbroker_groups", GAUGE, "Groups.", ("type", "state"), _by_state),
    values(
        "kbroker_group_rebalances_total",
        COUNTER,
        "Generations of classic groups, and epochs of the others, that began.",
        ("type",),
        _rebalances,
    ),
    values(
        "kbroker_open_transactions",
        GAUGE,
        "Transactions that have begun and whose markers are not all written yet.",
        ("state",),
        _open_transactions,
    ),
    value(
        "kbroker_oldest_transaction_seconds",
        GAUGE,
        "How long the oldest open transaction has been open; 0: none is.",
        _oldest_transaction,
    ),
)
