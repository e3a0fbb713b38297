"""What `kbroker dlq list` shows: dead-letter topics, and what is in them by origin and reason."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from kbroker.cli import connection, topic_patterns
from kbroker.cli.dlq_ledger import SUFFIX, read_ledger
from kbroker.cli.dlq_letters import DeadLetter, dead_letter, read, reader

_TAIL = 3  # offsets at the end of a partition that tell whether its topic has dead letters
_POLL_MS = 50


class _Cause(NamedTuple):
    from_topic: str | None
    group: str | None
    kind: str | None
    reason: str | None


def summaries(client: Any, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    known = connection.topic_metadata(client)
    with reader(arguments) as consumer:
        if arguments.topics:
            names = topic_patterns.expand(arguments.topics, (topic["name"] for topic in known))
            topics = connection.topic_metadata(client, names)
        else:
            topics = _detected(client, consumer, known, arguments.prefix)
        offsets = connection.partition_offsets(client, topics)
        return [_summary(consumer, topic, offsets, arguments.scan) for topic in topics]


def _detected(
    client: Any, consumer: Any, known: Sequence[dict[str, Any]], prefix: str
) -> list[dict[str, Any]]:
    """Topics by their name, or because their last records are dead letters."""
    names = {topic["name"] for topic in known}
    others = []
    found = set()
    for topic in known:
        name = topic["name"]
        if topic["is_internal"] or (name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in names):
            continue
        if name.startswith(prefix):
            found.add(name)
        else:
            others.append(topic)
    found |= _by_tail(consumer, connection.partition_offsets(client, others))
    return [topic for topic in known if topic["name"] in found]


def _by_tail(consumer: Any, offsets: dict[tuple[str, int], tuple[int, int]]) -> set[str]:
    make = connection.kafka().TopicPartition
    begins = {make(*key): max(start, end - _TAIL) for key, (start, end) in offsets.items() if end > start}
    if not begins:
        return set()
    found = set()
    consumer.assign(list(begins))
    ends = consumer.end_offsets(list(begins))  # of what is committed
    waiting = {partition for partition, start in begins.items() if start < ends[partition]}
    for partition, start in begins.items():
        consumer.seek(partition, min(start, ends[partition]))
    while waiting:
        for records in consumer.poll(timeout_ms=_POLL_MS).values():
            found |= {each.topic for each in records if dead_letter(each).origin is not None}
        waiting = {each for each in waiting if consumer.position(each) < ends[each]}
    return found


def _summary(
    consumer: Any, topic: dict[str, Any], offsets: dict[tuple[str, int], tuple[int, int]], scan: int
) -> dict[str, Any]:
    name = topic["name"]
    make = connection.kafka().TopicPartition
    bounds = {
        make(name, each["partition_index"]): offsets[name, each["partition_index"]]
        for each in topic["partitions"]
    }
    share = max(1, scan // max(1, len(bounds)))
    starts = {partition: max(start, end - share) for partition, (start, end) in bounds.items()}
    ledger = read_ledger(consumer, name, str(topic.get("topic_id", "")))
    causes: dict[_Cause, dict[str, Any]] = {}
    for each in read(consumer, list(bounds), starts):
        row = causes.setdefault(
            _cause(each), {"records": 0, "sent_back": 0, "oldest": each.record.timestamp, "newest": -1}
        )
        row["records"] += 1
        row["sent_back"] += ledger.has(each.record.partition, each.record.offset)
        row["oldest"] = min(row["oldest"], each.record.timestamp)
        row["newest"] = max(row["newest"], each.record.timestamp)
    total = sum(end - start for start, end in bounds.values())
    return {
        "topic": name,
        "offsets": total,
        "looked_at": sum(end - starts[partition] for partition, (_, end) in bounds.items()),
        "causes": [{**cause._asdict(), **row} for cause, row in causes.items()],
    }


def _cause(found: DeadLetter) -> _Cause:
    origin = found.origin
    if origin is None:
        return _Cause(None, None, None, None)
    return _Cause(origin.topic, origin.group, origin.kind, origin.reason)
