"""Requests of Kafka's protocol: how many, how large, how long they took, and with which errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import COUNTER, Number, value, values
from kbroker.observability.histograms import histogram
from kbroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.traffic import ApiTraffic

_ERROR_NAMES = {int(code): code.name for code in ErrorCode}


def _by_api(
    read: Callable[[ApiTraffic], Number],
) -> Callable[[Broker], Iterator[tuple[tuple[str, ...], Number]]]:
    return lambda broker: (((name,), read(found)) for name, found in broker.traffic.named())


def _errors(broker: Broker) -> Iterator[tuple[tuple[str, ...], int]]:
    for name, found in broker.traffic.named():
        for code, count in sorted(found.errors.items()):
            yield (name, _ERROR_NAMES.get(code, str(code))), count


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
