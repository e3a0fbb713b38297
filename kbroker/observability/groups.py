"""Groups of every type, transactions, and how far behind in time consumers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import (
    COUNTER,
    GAUGE,
    Family,
    Number,
    Piece,
    text_of,
    value,
    values,
)
from kbroker.observability.group_series import LABELS, GroupLabels, committed, groups_of
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.store import TopicPartition
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.observability.exposition import Exposition

_PIECE = 64  # series


class NextRecords:
    """The timestamps of the records that groups read next, kept by offset."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[str, dict[TopicPartition, tuple[int, int]]] = {}

    def seconds_behind(self, group_id: str, at: TopicPartition, offset: int) -> Iterator[Piece | float]:
        """At last a number, unless there is none to tell; what is to be waited for before."""
        broker = self._broker
        topic = broker.topics.get(at.topic)
        if topic is None:
            return
        log = broker.open_logs.get((topic.topic_id, at.partition))
        if log is None:
            if offset >= broker.logs.offsets(at.topic, at.partition)[1]:
                yield 0.0
                return
            log = broker.log(topic, at.partition)
        offset = max(offset, log.log_start_offset)
        if offset >= log.high_watermark:
            yield 0.0
            return
        known = self._known.setdefault(group_id, {})
        found = known.get(at)
        if found is None or found[0] != offset:
            timestamp = log.timestamp_of(offset)
            if isinstance(timestamp, Pending):
                yield timestamp
                timestamp = timestamp.result()
            found = known[at] = offset, timestamp
        if found[1] >= 0:
            yield max(broker.clock() - found[1], 0) / 1000

    def keep(self, group_ids: set[str]) -> None:
        if len(self._known) > len(group_ids):
            self._known = {group: known for group, known in self._known.items() if group in group_ids}


def _lag_seconds(exposition: Exposition, family: Family) -> Iterator[Piece]:
    next_records, labels = exposition.kept(NextRecords), exposition.kept(GroupLabels)
    seen: set[str] = set()
    lines: list[str] = []
    written = left_out = 0
    for group_id, offsets in committed(exposition.broker):
        seen.add(group_id)
        of_group = labels.of(group_id)
        for at, offset in offsets:
            if written >= exposition.most:
                left_out += 1
                continue
            try:
                for found in next_records.seconds_behind(group_id, at, offset.offset):
                    if not isinstance(found, float):
                        yield found
                        continue
                    text = of_group.get(at) or labels.add(group_id, at)
                    lines.append(f"{family.name}{text} {text_of(found)}\n")
                    written += 1
            except (ApiError, OSError, StorageError):
                continue  # of a partition that cannot be read there is nothing to tell
            if len(lines) >= _PIECE:
                yield "".join(lines)
                lines.clear()
            else:
                yield ""
    next_records.keep(seen)
    exposition.leave_out(family, left_out)
    yield "".join(lines)


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
