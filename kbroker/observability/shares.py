"""Share groups: what is in flight, what became of it; dead letters by the names of KIP-1191."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import COUNTER, GAUGE, Family, Number, values

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.dead_letters.moving import DeadLetterCounts
    from kbroker.shares.counts import ShareCounts
    from kbroker.shares.live import LiveShare
    from kbroker.shares.registry import Shares

Found = Iterator[tuple[tuple[str, ...], Number]]

_DEAD = "kafka_server_sharegroupmetrics_deadletterqueue"


def _shares(broker: Broker) -> Shares | None:
    return broker.__dict__.get("shares")


def _by_partition(name: str, doc: str, read: Callable[[LiveShare], int]) -> Family:
    def found(broker: Broker) -> Found:
        shares = _shares(broker)
        for live in [] if shares is None else shares.in_use():
            yield (live.key.group_id, live.log.topic, str(live.key.partition)), read(live)

    return values(name, GAUGE, doc, ("group", "topic", "partition"), found)


def _by_group(name: str, doc: str, read: Callable[[ShareCounts], int]) -> Family:
    def found(broker: Broker) -> Found:
        shares = _shares(broker)
        for group_id, counts in [] if shares is None else sorted(shares.counts.items()):
            yield (group_id,), read(counts)

    return values(name, COUNTER, doc, ("group",), found)


def _deliveries(broker: Broker) -> Found:
    shares = _shares(broker)
    for group_id, counts in [] if shares is None else sorted(shares.counts.items()):
        for delivery, records in sorted(counts.deliveries.items()):
            yield (group_id, str(delivery)), records


def _dead_letters(name: str, doc: str, read: Callable[[DeadLetterCounts], int]) -> Family:
    def found(broker: Broker) -> Found:
        shares = _shares(broker)
        for group_id, counts in [] if shares is None else sorted(shares.dead_letter_counts.items()):
            yield (group_id,), read(counts)

    return values(_DEAD + name, COUNTER, doc, ("group",), found)


FAMILIES = (
    _by_partition(
        "kbroker_share_in_flight_records",
        "Records between the start offset of a share partition in use and the last one that was given.",
        lambda live: live.partition.in_flight,
    ),
    _by_partition(
        "kbroker_share_acquired_records",
        "Those that members hold now.",
        lambda live: live.partition.acquired,
    ),
    _by_partition(
        "kbroker_share_lag_records",
        "Records from the start offset of a share partition in use to the end.",
        lambda live: max(live.log.high_watermark - live.partition.start_offset, 0),
    ),
    values(
        "kbroker_share_deliveries_total",
        COUNTER,
        "Records given to members, by the number of the delivery: 1 is the first time.",
        ("group", "delivery"),
        _deliveries,
    ),
    _by_group(
        "kbroker_share_acknowledged_records_total", "Records accepted.", lambda counts: counts.acknowledged
    ),
    _by_group(
        "kbroker_share_released_records_total",
        "Records given back: released, or because a lock or a session ended.",
        lambda counts: counts.released,
    ),
    _by_group(
        "kbroker_share_archived_records_total",
        "Records given up: rejected, delivered too often, aborted or gone.",
        lambda counts: counts.archived,
    ),
    _dead_letters("recordcount_total", "Dead letters written.", lambda counts: counts.records),
    _dead_letters(
        "totalproducerequests_total",
        "Batches of dead letters to be appended.",
        lambda counts: counts.requests,
    ),
    _dead_letters(
        "failedproducerequests_total",
        "Those that could not be appended.",
        lambda counts: counts.failed_requests,
    ),
)
