"""Which records lie in a range of time, as offsets: of those only that a stream has passed."""

from __future__ import annotations

import re
from typing import NamedTuple

from kbroker.pipeline.kafka_client import KafkaClient, Offsets
from kbroker.pipeline.spec import Source


class Range(NamedTuple):
    """By Kafka timestamps."""

    start_ms: int
    end_ms: int


class Records(NamedTuple):
    """From `start` to before `end`, partition by partition."""

    start: Offsets
    end: Offsets

    @property
    def total(self) -> int:
        return sum(
            end - self.start[topic][partition]
            for topic, partitions in self.end.items()
            for partition, end in partitions.items()
        )


def of_source(source: Source, offsets: Offsets) -> Offsets:
    """The part of a checkpoint that is this source's: by its topics, or its pattern."""
    if source.pattern is not None:
        return {topic: each for topic, each in offsets.items() if re.fullmatch(source.pattern, topic)}
    return {topic: each for topic, each in offsets.items() if topic in source.named_topics()}


def bounds(client: KafkaClient, passed: Offsets, wanted: Range | None = None) -> Records:
    """Those that the log still has, of the range of time (None: of all time), that the stream has passed."""
    log_start = client.start_offsets(passed)
    first = client.offsets_at(passed, wanted.start_ms) if wanted else log_start
    last = client.offsets_at(passed, wanted.end_ms) if wanted else passed
    start: Offsets = {}
    end: Offsets = {}
    for topic, partitions in passed.items():
        for partition, limit in partitions.items():
            until = last[topic][partition]
            until = limit if until < 0 else min(until, limit)
            since = first[topic][partition]
            since = until if since < 0 else min(max(since, log_start[topic][partition]), until)
            start.setdefault(topic, {})[partition] = since
            end.setdefault(topic, {})[partition] = max(since, until)
    return Records(start, end)
