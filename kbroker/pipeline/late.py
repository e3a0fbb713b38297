"""Late records as dead letters: those that a deduplication or a window left out for their event's time.

Spark drops late rows inside its operators, and tells only how many. Which ones they were follows from the
checkpoint: in batch N an operator drops a row whose time (a window: whose end) is not after the watermark of
batch N-1. So when a batch has dropped something, its records are read again and brought through the
same steps up to the operator; those that are behind that watermark are sent, one letter for each record.

Batches are handled in their order, and the last one is kept in the progress (`late_handled`): what a killed
run has not sent, the next one sends. A letter is sent at least once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbroker.pipeline import decoding, failures, graph, kafka_client, sources, steps, views
from kbroker.pipeline.errors import FileProblem, PipelineError
from kbroker.pipeline.progress import Progress
from kbroker.pipeline.ranges import of_source
from kbroker.pipeline.spec import Pipeline, Sink, Source, Window
from kbroker.pipeline.state import Batch, State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("kbroker.pipeline")
REASON = "late: behind the watermark"
ORIGIN = ("_topic", "_partition", "_offset")
PAUSE_SECONDS = 5.0
_WATERMARKED = "spark.watermarkDelayMs"


class LateLetters:
    """Of one sink's query."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, sink: Sink, progress: Progress) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._sink = sink
        self._progress = progress
        self._state = State(pipeline.state)
        self._operators = tuple(graph.late_operators(pipeline, sink))
        self._columns: dict[str, str] | None = None
        self._not_before = 0.0
        if not self._operators:
            progress.late_handled = None
            return
        progress.dropped = {}
        if progress.late_handled is None:
            committed = self._state.committed(sink.name)
            progress.late_handled = committed.batch if committed else -1

    def send(self, now: float) -> None:
        """Send those of all batches that have been reported; what fails and may pass is tried again later."""
        if now >= self._not_before and self._operators and not self._sent(self._progress.batch):
            self._not_before = now + PAUSE_SECONDS

    def finish(self) -> None:
        """Send those of all batches that are done, reported or not."""
        committed = self._state.committed(self._sink.name) if self._operators else None
        if committed is not None:
            self._sent(committed.batch)

    def check(self) -> None:
        """Raise where the steps do not keep what tells a record."""
        if self._columns is None:
            self._columns = dict(self._time_columns())
            self._operators = tuple(each for each in self._operators if each.step.name in self._columns)

    def _sent(self, last: int) -> bool:
        """False where it failed for a reason that may pass."""
        progress = self._progress
        assert progress.late_handled is not None
        assert progress.dropped is not None
        try:
            for number in range(progress.late_handled + 1, last + 1):
                if (
                    progress.dropped.pop(number, None) != 0
                ):  # unknown: a run that was killed had no time to tell
                    progress.late_letters += self._send_batch(number)
                progress.late_handled = number
                progress.save(self._state)
        except PipelineError:
            raise
        except Exception as error:
            failure = failures.explain(error)
            said = f"{self._sink.name}: late records cannot be sent: {failure.message}"
            if not failure.may_pass:
                raise PipelineError(said) from None
            logger.warning("%s; tried again later, or by the next run", said)
            return False
        return True

    def _send_batch(self, number: int) -> int:
        """Returns the number of letters."""
        from pyspark.sql import functions as F

        self.check()
        batch = self._state.batch(self._sink.name, number)
        if batch is None:
            logger.warning(
                "%s: late records of batch %d cannot be told: its checkpoint is gone", self._sink.name, number
            )
            return 0
        wanted = {source.name: source for each in self._operators for source in each.sources}
        names = frozenset().union(
            *(graph.lineage(self._pipeline, each.view).names for each in self._operators)
        )
        with kafka_client.connected(self._pipeline) as client:
            log_start = client.start_offsets(batch.end)
        built = views.build(
            self._spark,
            self._pipeline,
            lambda session, source: self._read(session, source, batch, log_start),
            only=names,
        )
        origins = self._origins(built, batch).persist()
        sent = 0
        try:
            for source in wanted.values():
                records = built.decoded[source.name].where("_reason is null")
                same = [F.col(name.removeprefix("_")) == F.col(f"late.{name}") for name in ORIGIN]
                late = records.join(origins.alias("late"), same, "left_semi")
                count = late.count()
                if count:
                    letters = decoding.letters(
                        late, source, self._pipeline.name, F.lit(REASON),
                        sink=F.lit(self._sink.name), watermark=F.lit(batch.watermark_ms),
                    )  # fmt: skip
                    writer = letters.write.format("kafka").options(**sources.kafka_options(self._pipeline))
                    writer.option("topic", source.dead_letter).save()
                    sent += count
        finally:
            origins.unpersist()
        return sent

    def _read(
        self, session: SparkSession, source: Source, batch: Batch, log_start: kafka_client.Offsets
    ) -> DataFrame:
        start: kafka_client.Offsets = {}
        end = of_source(source, batch.end)
        for topic, partitions in end.items():
            for partition, until in partitions.items():
                since = batch.start.get(topic, {}).get(partition, 0)
                there = log_start.get(topic, {}).get(partition, until)
                if since < there and partition in batch.start.get(topic, {}):
                    logger.warning(
                        "%s: records of %s-%d before %d are gone: those that were late are not sent",
                        self._sink.name, topic, partition, min(there, until),
                    )  # fmt: skip
                start.setdefault(topic, {})[partition] = min(max(since, there), until)
        return sources.read_range(session, self._pipeline, source, start, end)

    def _origins(self, built: views.Views, batch: Batch) -> DataFrame:
        """Where the late records stand, each once."""
        from pyspark.sql import functions as F

        assert self._columns is not None
        found: DataFrame | None = None
        watermark = F.timestamp_millis(F.lit(batch.watermark_ms))
        for step, view, _ in self._operators:
            rows = built.frames[view]
            if isinstance(step.action, Window):
                rows = rows.select(*ORIGIN, steps.window_of(step.action).alias("window"))
                late = rows.where(F.col("window.end") <= watermark)
            else:
                late = rows.where(F.col(self._columns[step.name]) <= watermark)
            late = late.select(*ORIGIN)
            found = late if found is None else found.union(late)
        assert found is not None
        return found.distinct()

    def _time_columns(self) -> Iterator[tuple[str, str]]:
        """By step: the column that Spark compares with the watermark; none where it drops nothing."""
        for step, view, _ in self._operators:
            names = graph.lineage(self._pipeline, view).names
            stream = views.build(self._spark, self._pipeline, counted=False, only=names).frames[view]
            missing = [name for name in ORIGIN if name not in stream.columns]
            if missing:
                raise FileProblem(
                    f"line {step.line}: step {step.name!r}: late: dead_letter needs the columns "
                    f"{', '.join(missing)} in {view!r}, to tell which records were late"
                )
            watermarked = [
                field.name
                for field in steps.with_watermark(stream, step.watermark).schema
                if _WATERMARKED in field.metadata
            ]
            action = step.action
            if isinstance(action, Window):
                watermarked = [name for name in watermarked if name.lower() == action.time.lower()]
            if watermarked:
                yield step.name, watermarked[0]
