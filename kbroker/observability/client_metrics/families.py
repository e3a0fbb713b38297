"""What clients pushed, in /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.client_metrics.last_values import INFO_LABELS, OWN_LABELS, PREFIX, PushedFamily
from kbroker.observability.families import (
    COUNTER,
    GAUGE,
    Family,
    Number,
    Series,
    pieces,
    text_of,
    value,
    values,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.client_metrics.receiver import Receiver
    from kbroker.observability.exposition import Exposition


def _receiver(broker: Broker) -> Receiver | None:
    """If any client ever asked or pushed: looking does not make it."""
    return broker.client_metrics if "client_metrics" in broker.__dict__ else None


def _number(read: Callable[[Receiver], Number | None]) -> Callable[[Broker], Number | None]:
    def found(broker: Broker) -> Number | None:
        receiver = _receiver(broker)
        return 0 if receiver is None else read(receiver)

    return found


def _clients(broker: Broker) -> int:
    receiver = _receiver(broker)
    if receiver is None:
        return 0
    receiver.values.expire(broker.clock())
    return len(receiver.values)


def _infos(broker: Broker) -> Series:
    receiver = _receiver(broker)
    return () if receiver is None else receiver.values.infos()


def _pushed(exposition: Exposition) -> Iterator[Family]:
    receiver = _receiver(exposition.broker)
    for each in () if receiver is None else receiver.values.families():
        yield _family(each)


def _family(pushed: PushedFamily) -> Family:
    def lines() -> Iterator[str]:
        name = pushed.name
        for series in list(pushed.by_client.values()):
            for labels, number in series.items():
                yield f"{name}{labels} {text_of(number)}\n"

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        yield from pieces(exposition.within_bounds(family, lines()))

    return Family(pushed.name, pushed.kind, f"Pushed by clients: {pushed.pushed_name}.", (), write)


def _nothing(exposition: Exposition, family: Family) -> Iterator[str]:
    return iter(())


FAMILIES = (
    value("kbroker_telemetry_clients", GAUGE, "Clients whose metrics are known.", _clients),
    value(
        "kbroker_telemetry_series",
        GAUGE,
        "Series of clients that are known.",
        _number(lambda receiver: receiver.values.series),
    ),
    value(
        "kbroker_telemetry_left_out_series_total",
        COUNTER,
        "Series of pushes that were left out: no room, no number, or of another kind than those of others.",
        _number(lambda receiver: receiver.values.left_out),
    ),
    value(
        "kbroker_telemetry_pushes_total",
        COUNTER,
        "Pushes of clients that were taken.",
        _number(lambda receiver: receiver.pushes),
    ),
    value(
        "kbroker_telemetry_pushed_bytes_total",
        COUNTER,
        "Bytes of these pushes, decompressed.",
        _number(lambda receiver: receiver.pushed_bytes),
    ),
    value(
        "kbroker_telemetry_forwarded_pushes_total",
        COUNTER,
        "Pushes that the OTLP receiver took, where kbroker.telemetry.exporters names it.",
        _number(lambda receiver: receiver.forwarder.forwarded if receiver.forwarder else 0),
    ),
    value(
        "kbroker_telemetry_dropped_pushes_total",
        COUNTER,
        "Pushes that were to go there and were dropped.",
        _number(lambda receiver: receiver.forwarder.dropped if receiver.forwarder else 0),
    ),
    values("kbroker_client_info", GAUGE, "1, with what is known of a client.", INFO_LABELS, _infos),
    Family(
        f"{PREFIX}*",
        "gauge or counter",
        "What clients pushed, named after it: org.apache.kafka.producer.record.send.total is "
        "kbroker_client_producer_record_send_total. Further labels are the client's.",
        OWN_LABELS,
        _nothing,
        _pushed,
    ),
)
