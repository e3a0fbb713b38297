"""Which views a sink's query reads, and what state its steps keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kbroker.pipeline import sql
from kbroker.pipeline.spec import Deduplicate, Join, Pipeline, Sink, Source, Sql, Step, Window


@dataclass(frozen=True, slots=True)
class Lineage:
    """Everything upstream of one view."""

    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    tables: tuple[str, ...]
    watermarked: bool

    @property
    def names(self) -> frozenset[str]:
        """Of all views that the query needs."""
        return frozenset(
            {*(source.name for source in self.sources), *(step.name for step in self.steps), *self.tables}
        )

    @property
    def windows(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if isinstance(step.action, Window))

    @property
    def aggregating(self) -> Step | None:
        """The first step that aggregates, by a window or in SQL."""
        for step in self.steps:
            if isinstance(step.action, Window):
                return step
            if isinstance(step.action, Sql) and sql.analyse(step.action.text).aggregates:
                return step
        return None

    @property
    def stateful(self) -> Step | None:
        """The first step that keeps state between batches."""
        for step in self.steps:
            if isinstance(step.action, Deduplicate):
                return step
        return self.aggregating or self.stream_join

    @property
    def stream_join(self) -> Step | None:
        """A step that may join two streams: the query has two sources."""
        if len(self.sources) < 2:
            return None
        for step in self.steps:
            if isinstance(step.action, Join):
                return step
            if isinstance(step.action, Sql) and sql.analyse(step.action.text).joins:
                return step
        return None


def inputs(step: Step) -> tuple[sql.Reference, ...]:
    """The views a step reads; the line counts from the step's own."""
    action = step.action
    if isinstance(action, Sql):
        return sql.analyse(action.text).references
    if isinstance(action, Join):
        return sql.Reference(action.left, 0), sql.Reference(action.right, 0)
    return (sql.Reference(action.view, 0),)


def lineage(pipeline: Pipeline, view: str) -> Lineage:
    order = list(dict.fromkeys(_upstream(pipeline, view)))
    steps = tuple(step for name, step in pipeline.steps.items() if name in order)
    sources = tuple(source for name, source in pipeline.sources.items() if name in order)
    watermarks = [*(step.watermark for step in steps), *(source.watermark for source in sources)]
    watermarked = any(watermark is not None for watermark in watermarks)
    return Lineage(sources, steps, tuple(name for name in pipeline.tables if name in order), watermarked)


def sink_lineage(pipeline: Pipeline, sink: Sink) -> Lineage:
    return lineage(pipeline, sink.view)


class LateOperator(NamedTuple):
    """A step that leaves out late rows, and the sources whose records are then sent as dead letters."""

    step: Step
    view: str
    sources: tuple[Source, ...]


def late_operators(pipeline: Pipeline, sink: Sink) -> Iterator[LateOperator]:
    """Those of a sink's query whose late records are wanted as dead letters, and can be told."""
    if sink.output_mode == "complete":
        return  # Spark leaves nothing out
    for step in sink_lineage(pipeline, sink).steps:
        if not isinstance(step.action, Deduplicate | Window):
            continue
        before = lineage(pipeline, step.action.view)
        if before.aggregating is None and before.stream_join is None:
            wanted = tuple(source for source in before.sources if _wants_letters(source, step, before))
            if wanted:
                yield LateOperator(step, step.action.view, wanted)


def _wants_letters(source: Source, step: Step, before: Lineage) -> bool:
    watermarks = [source.watermark, step.watermark, *(each.watermark for each in before.steps)]
    return any(each is not None and each.late == "dead_letter" for each in watermarks)


def _upstream(pipeline: Pipeline, view: str) -> Iterator[str]:
    yield view
    step = pipeline.steps.get(view)
    if step is not None:
        names = list(pipeline.steps)
        for reference in inputs(step):
            earlier = reference.name not in pipeline.steps or (
                names.index(reference.name) < names.index(view)
            )
            if earlier:
                yield from _upstream(pipeline, reference.name)
