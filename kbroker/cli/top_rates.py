"""What happened between two looks: the document that `kbroker top` prints or draws."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kbroker.cli.top_look import ApiLook, GroupLook, Look, TopicLook

Row = dict[str, Any]

TOPIC_ORDERS = ("records_per_second", "bytes_in_per_second", "bytes_out_per_second", "log_bytes", "topic")
GROUP_ORDERS = ("lag", "lag_seconds", "records_per_second", "group")
REQUEST_ORDERS = ("p99_ms", "mean_ms", "per_second", "errors_per_second", "api")
_NAMES = ("topic", "group", "api")


def measured(before: Look, after: Look) -> Row:
    """JSON. A number is null where the broker does not tell it by the way that was taken."""
    seconds = max(after.at - before.at, 1e-6)
    since = _Since(seconds, complete=not (before.left_out or after.left_out))
    topics = [_topic(since, name, before.topics.get(name), each) for name, each in after.topics.items()]
    requests = _requests(since, before.apis, after.apis)
    log_bytes = _sum(topics, "log_bytes")
    process = after.process
    return {
        "source": after.source,
        "cluster_id": after.cluster_id,
        "brokers": after.brokers,
        "seconds": round(seconds, 3),
        "answer_ms": _rounded(after.answer_ms),
        "left_out": after.left_out,
        "partitions": sum(each.partitions for each in after.topics.values()),
        "throughput": {
            "records_per_second": _sum(topics, "records_per_second"),
            "bytes_in_per_second": _sum(topics, "bytes_in_per_second"),
            "bytes_out_per_second": _sum(topics, "bytes_out_per_second"),
            "requests_per_second": None if requests is None else _sum(requests, "per_second"),
            "errors_per_second": None if requests is None else _sum(requests, "errors_per_second"),
        },
        "topics": ordered(topics, TOPIC_ORDERS[0]),
        "groups": ordered(
            [_group(since, name, before.groups.get(name), each) for name, each in after.groups.items()],
            GROUP_ORDERS[0],
        ),
        "requests": None if requests is None else ordered(requests, REQUEST_ORDERS[0]),
        "process": {
            "memory_bytes": process.memory_bytes,
            "cpu_percent": _rounded(_times(100, since.rate(before.process.cpu_seconds, process.cpu_seconds))),
            "connections": process.connections,
            "open_files": process.open_files,
            "most_files": process.most_files,
            "up_seconds": None if process.started is None else round(max(time.time() - process.started, 0)),
        },
        "disk": {
            "log_bytes": log_bytes,
            "log_growth_per_second": _sum(topics, "log_growth_per_second"),
            "total_bytes": after.disk_total_bytes,
            "usable_bytes": after.disk_usable_bytes,
        },
    }


def ordered(rows: Iterable[Row], by: str) -> list[Row]:
    """The largest first, and names as the alphabet has them; where nothing is known comes last."""
    if by in _NAMES:
        return sorted(rows, key=lambda row: str(row[by]))
    return sorted(rows, key=lambda row: (row[by] is None, -(row[by] or 0), _name(row)))


def _name(row: Row) -> str:
    return next(str(row[key]) for key in _NAMES if key in row)


class _Since:
    """Rates over some seconds."""

    def __init__(self, seconds: float, *, complete: bool) -> None:
        self._seconds = seconds
        self._complete = complete

    def began(self, before: float | None) -> float | None:
        """The first number of what was not there before: 0, unless it may only have been left out."""
        return 0 if before is None and self._complete else before

    def rate(self, before: float | None, after: float | None) -> float | None:
        """Of what only grows: where it shrank it began anew, as with a start of the broker."""
        if before is None or after is None:
            return None
        return round((after if after < before else after - before) / self._seconds, 3)

    def change(self, before: float | None, after: float | None) -> float | None:
        """Of what also shrinks."""
        return None if before is None or after is None else round((after - before) / self._seconds, 3)


def _topic(since: _Since, name: str, before: TopicLook | None, after: TopicLook) -> Row:
    was = before or TopicLook(0, *map(since.began, (None, None, None, None)))
    return {
        "topic": name,
        "partitions": after.partitions,
        "records_per_second": since.rate(was.records, after.records),
        "bytes_in_per_second": since.rate(was.bytes_in, after.bytes_in),
        "bytes_out_per_second": since.rate(was.bytes_out, after.bytes_out),
        "log_bytes": after.log_bytes,
        "log_growth_per_second": since.change(was.log_bytes, after.log_bytes),
    }


def _group(since: _Since, name: str, before: GroupLook | None, after: GroupLook) -> Row:
    rate = None if before is None else since.change(before.position, after.position)
    return {
        "group": name,
        "type": after.type,
        "state": after.state,
        "members": after.members,
        "lag": after.lag,
        "lag_seconds": _rounded(after.lag_seconds),
        # Offsets that were set back, or whose topic was deleted, are nothing done.
        "records_per_second": None if rate is None else max(rate, 0),
    }


def _requests(
    since: _Since, before: Mapping[str, ApiLook] | None, after: Mapping[str, ApiLook] | None
) -> list[Row] | None:
    if after is None:
        return None
    return [_api(since, name, (before or {}).get(name), each) for name, each in after.items()]


def _api(since: _Since, name: str, before: ApiLook | None, after: ApiLook) -> Row:
    was = before if before is not None and before.count <= after.count else ApiLook()
    count = after.count - was.count
    buckets = {bound: number - was.buckets.get(bound, 0) for bound, number in after.buckets.items()}
    return {
        "api": name,
        "per_second": since.rate(was.count, after.count),
        "errors_per_second": since.rate(was.errors, after.errors),
        "mean_ms": _rounded(1000 * (after.seconds - was.seconds) / count) if count else None,
        "p50_ms": _rounded(_times(1000, quantile(buckets, 0.5))),
        "p99_ms": _rounded(_times(1000, quantile(buckets, 0.99))),
    }


def quantile(buckets: Mapping[float, float], of: float) -> float | None:
    """As Prometheus' histogram_quantile finds it, between the bounds of a bucket."""
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return None
    wanted = of * buckets[bounds[-1]]
    lower = below = 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            inside = buckets[bound] - below
            if bound == float("inf") or inside <= 0:
                return lower
            return lower + (bound - lower) * (wanted - below) / inside
        lower, below = bound, buckets[bound]
    return lower


def _sum(rows: Sequence[Row], key: str) -> float | None:
    """None where no row knows; 0 of no rows."""
    known = [row[key] for row in rows if row[key] is not None]
    return None if rows and not known else round(sum(known), 3)


def _times(factor: float, number: float | None) -> float | None:
    return None if number is None else factor * number


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)
