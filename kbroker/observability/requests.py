"""Requests of Kafka's protocol: how many, how large, how long they took, and with which errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from kbroker.observability.families import (
    COUNTER,
    HISTOGRAM,
    Family,
    Number,
    labels_text,
    text_of,
    value,
    values,
)
from kbroker.protocol.errors import ErrorCode
from kbroker.times import BOUNDS

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.exposition import Exposition
    from kbroker.requests.traffic import ApiTraffic
    from kbroker.times import Times

_ERROR_NAMES = {int(code): code.name for code in ErrorCode}
_UPPER_BOUNDS = (*map(text_of, BOUNDS), "+Inf")


def _by_api(
    read: Callable[[ApiTraffic], Number],
) -> Callable[[Broker], Iterator[tuple[tuple[str, ...], Number]]]:
    return lambda broker: (((name,), read(found)) for name, found in broker.traffic.named())


def _errors(broker: Broker) -> Iterator[tuple[tuple[str, ...], int]]:
    for name, found in broker.traffic.named():
        for code, count in sorted(found.errors.items()):
            yield (name, _ERROR_NAMES.get(code, str(code))), count


def histogram(
    name: str,
    doc: str,
    labels: tuple[str, ...],
    read: Callable[[Broker], Iterator[tuple[tuple[str, ...], Times]]],
) -> Family:
    """Of times; the bounds are those of `Times`."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        for of, times in read(exposition.broker):
            lines = [
                f"{name}_bucket{labels_text((*labels, 'le'), (*of, bound))} {count}\n"
                for bound, count in zip(_UPPER_BOUNDS, accumulate(times.buckets), strict=True)
            ]
            inner = labels_text(labels, of)
            lines.append(f"{name}_sum{inner} {text_of(times.seconds)}\n")
            lines.append(f"{name}_count{inner} {times.count}\n")
            yield "".join(lines)

    return Family(name, HISTOGRAM, doc, labels, write)


FAMILIES = (
    values(
        "kbroker_requests_total",
        COUNTER,
        "Requests that were answered.",
        ("api",),
        _by_api(lambda found: found.count),
    ),
    values(
        "kbroker_request_bytes_total",
        COUNTER,
        "Bytes of requests.",
        ("api",),
        _by_api(lambda found: found.received_bytes),
    ),
    values(
        "kbroker_response_bytes_total",
        COUNTER,
        "Bytes of answers.",
        ("api",),
        _by_api(lambda found: found.sent_bytes),
    ),
    values(
        "kbroker_request_errors_total",
        COUNTER,
        "Error codes in answers: of the whole answer and of the topics, partitions and others in it.",
        ("api", "error"),
        _errors,
    ),
    histogram(
        "kbroker_request_seconds",
        "Time from the last byte of a request to its answer, without what a long poll waited for others.",
        ("api",),
        lambda broker: (((name,), found) for name, found in broker.traffic.named()),
    ),
    value(
        "kbroker_slow_requests_total",
        COUNTER,
        "Requests that took longer than kbroker.slow.request.ms.",
        lambda broker: broker.traffic.slow,
    ),
    value(
        "kbroker_malformed_requests_total",
        COUNTER,
        "Requests that could not be answered, so that their connections were closed.",
        lambda broker: broker.traffic.malformed,
    ),
)
