"""How far a job is: each query's checkpoint against the ends of its topics, whether it runs or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kbroker.pipeline import graph
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.kafka_client import KafkaClient, Offsets
from kbroker.pipeline.progress import Progress
from kbroker.pipeline.render import progress_bar, table
from kbroker.pipeline.spec import Pipeline, Source
from kbroker.pipeline.state import State


class PartitionStatus(NamedTuple):
    topic: str
    partition: int
    offset: int | None
    """The next offset to read; None before the first batch."""
    start: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - max(self.offset or 0, self.start))


class QueryStatus(NamedTuple):
    name: str
    progress: Progress
    partitions: tuple[PartitionStatus, ...]

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    @property
    def total(self) -> int:
        return sum(partition.end - partition.start for partition in self.partitions)


def status(pipeline: Pipeline, client: KafkaClient) -> list[QueryStatus]:
    state = State(pipeline.state)
    if not state.local:
        raise PipelineError(
            f"the state {state.location} is not a local directory: see the lag of progress_group instead"
        )
    found = []
    for name, sources in queries(pipeline):
        topics = _topics(sources, client)
        committed = state.committed(name)
        offsets = committed.offsets if committed else {}
        starts, ends = client.start_offsets(topics), client.end_offsets(topics)
        partitions = tuple(_partitions(offsets, starts, ends))
        found.append(QueryStatus(name, Progress.load(state, name), partitions))
    return found


def queries(pipeline: Pipeline) -> Iterator[tuple[str, tuple[Source, ...]]]:
    """Every query of a job with the sources it reads."""
    for sink in pipeline.sinks.values():
        yield sink.name, graph.sink_lineage(pipeline, sink).sources
    for source in pipeline.sources.values():
        if source.dead_letter is not None:
            yield f"{source.name}.dead_letter", (source,)


def render(statuses: list[QueryStatus], *, per_partition: bool = True) -> str:
    rows = [
        (
            each.name,
            progress_bar(each.total - each.lag, each.total),
            each.lag,
            each.progress.batch if each.progress.batch >= 0 else "-",
            each.progress.timestamp or "never ran",
            each.progress.rows,
            each.progress.rows_per_second,
            each.progress.rejected,
            each.progress.late or 0,
        )
        for each in statuses
    ]
    headings = ("query", "read", "lag", "batch", "last batch", "rows", "rows/s", "rejected", "late")
    parts = [table(headings, rows)]
    if per_partition:
        lines = [
            (each.name, part.topic, part.partition, _shown(part.offset), part.end, part.lag)
            for each in statuses
            for part in each.partitions
        ]
        parts.append(table(("query", "topic", "partition", "offset", "end", "lag"), lines))
    return "\n\n".join(parts)


def plain(statuses: list[QueryStatus]) -> list[dict[str, Any]]:
    """For programs: what render shows, with nothing left out."""
    return [
        {
            "query": each.name,
            "lag": each.lag,
            "batch": each.progress.batch if each.progress.batch >= 0 else None,
            "last_batch": each.progress.timestamp or None,
            "last_rows": each.progress.last_rows,
            "rows": each.progress.rows,
            "rows_per_second": each.progress.rows_per_second,
            "rejected": each.progress.rejected,
            "late_rows": each.progress.late_rows,
            "late_groups": each.progress.late_groups,
            "late_letters": each.progress.late_letters,
            "partitions": [{**part._asdict(), "lag": part.lag} for part in each.partitions],
        }
        for each in statuses
    ]


def _shown(offset: int | None) -> int | str:
    return "-" if offset is None else offset


def _topics(sources: tuple[Source, ...], client: KafkaClient) -> list[str]:
    there = client.topics()
    found: list[str] = []
    for source in sources:
        if source.pattern is not None:
            found += [topic for topic in sorted(there) if re.fullmatch(source.pattern, topic)]
        else:
            missing = [topic for topic in source.named_topics() if topic not in there]
            if missing:
                raise PipelineError(f"source {source.name!r}: there is no topic {', '.join(missing)}")
            found += source.named_topics()
    return list(dict.fromkeys(found))


def _partitions(offsets: Offsets, starts: Offsets, ends: Offsets) -> Iterator[PartitionStatus]:
    for topic, partitions in sorted(ends.items()):
        for partition, end in sorted(partitions.items()):
            yield PartitionStatus(
                topic, partition, offsets.get(topic, {}).get(partition), starts[topic][partition], end
            )
