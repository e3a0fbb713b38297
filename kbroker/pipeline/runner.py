"""Run a declared job: every sink's query and the dead letters', until they are done, stopped or beyond help.

A query that fails for a reason that may pass is started again from its checkpoint, with growing pauses, for
`retry_for` after its last batch. Any other failure stops all queries.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kbroker.pipeline import decoding, failures, graph, kafka_client, sinks, views
from kbroker.pipeline.committing import Committer
from kbroker.pipeline.durations import milliseconds
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.kafka_client import KafkaClient, Offsets
from kbroker.pipeline.late import LateLetters
from kbroker.pipeline.progress import Progress
from kbroker.pipeline.session import java_ended
from kbroker.pipeline.spec import Pipeline, Sink, Source, Trigger
from kbroker.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("kbroker.pipeline")
LONGEST_PAUSE_SECONDS = 30.0
Observer = Callable[[list[Progress]], None]


class Query:
    """One streaming query over its restarts."""

    def __init__(self, name: str, start: Callable[[], StreamingQuery], progress: Progress) -> None:
        self.name = name
        self.progress = progress
        self._start = start
        self._running: StreamingQuery | None = None
        self._failing_since: float | None = None
        self._pause = 1.0
        self._start_at = 0.0
        self.done = False

    def step(self, now: float, retry_seconds: float) -> None:
        """Start, look at or restart the query; raises PipelineError when it is beyond help."""
        if self.done:
            return
        if self._running is None:
            if now < self._start_at:
                return
            try:
                self._running = self._start()
            except PipelineError:
                raise
            except Exception as error:
                self._failed(error, now, retry_seconds)
            return
        active = self._running.isActive  # before the reports: one that ends meanwhile has its last one there
        if self.progress.take(self._reports(self._running)):
            self._failing_since, self._pause = None, 1.0
        if active:
            return
        reason = self._running.exception()
        self._running = None
        if reason is None:
            self.done = True
        else:
            self._failed(reason, now, retry_seconds)

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
            self.progress.take(self._reports(self._running))
            self._running = None

    def _reports(self, running: StreamingQuery) -> Sequence[Mapping[str, Any]]:
        """Those that may be new: Spark keeps a hundred, and each costs a conversion."""
        last = running.lastProgress
        if last is None:
            return ()
        return running.recentProgress if last["batchId"] > self.progress.batch + 1 else [last]

    def _failed(self, error: BaseException, now: float, retry_seconds: float) -> None:
        failure = failures.explain(error)
        logger.debug("query %s: %s", self.name, error)
        since = self._failing_since if self._failing_since is not None else now
        self._failing_since = since
        if not failure.may_pass:
            raise PipelineError(f"{self.name}: {failure.message}")
        if now - since > retry_seconds:
            raise PipelineError(f"{self.name}: {failure.message}; given up after {now - since:.0f} s")
        logger.warning("%s: %s; trying again in %.0f s", self.name, failure.message, self._pause)
        self._start_at = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)


class Runner:
    def __init__(self, pipeline: Pipeline, spark: SparkSession) -> None:
        self.pipeline = pipeline
        self._spark = spark
        self._state = State(pipeline.state)
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ask `run` to stop its queries and return; from a signal handler or another thread."""
        self._stopping.set()

    def run(self, observer: Observer | None = None, pause_seconds: float = 0.25) -> list[Progress]:
        """Returns what each query has done, when all are done or `stop` was called."""
        with ExitStack() as stack:
            stack.enter_context(self._state.locked())
            with kafka_client.connected(self.pipeline) as client:
                check_sources(self.pipeline, client)
                create_targets(self.pipeline, client)
            committer = Committer(self.pipeline)
            stack.callback(committer.close)
            queries = list(self._queries())
            late = self._late_letters(queries)
            stack.callback(self._finish, queries, committer, late)
            retry_seconds = milliseconds(self.pipeline.retry_for) / 1000
            while not self._stopping.is_set() and not all(query.done for query in queries):
                for query in queries:
                    query.step(time.monotonic(), retry_seconds)
                self._keep(queries, committer)
                for letters in late:
                    letters.send(time.monotonic())
                if observer is not None:
                    observer([query.progress for query in queries])
                self._stopping.wait(pause_seconds)
        return [query.progress for query in queries]

    def _keep(self, queries: list[Query], committer: Committer) -> None:
        for query in queries:
            query.progress.save(self._state)
            if self.pipeline.progress_group is not None:
                # A continuous trigger reports nothing, nor does a query that has just started.
                written = query.progress.offsets or self._written(query)
                committer.commit(query.name, written, time.monotonic())

    def _late_letters(self, queries: list[Query]) -> list[LateLetters]:
        progress = {query.name: query.progress for query in queries}
        found = [
            LateLetters(self._spark, self.pipeline, sink, progress[sink.name])
            for sink in self.pipeline.sinks.values()
        ]
        for letters in found:
            letters.check()
        return found

    def _finish(self, queries: list[Query], committer: Committer, late: list[LateLetters]) -> None:
        gone = java_ended(self._spark)
        for query in queries:
            if not gone:
                query.stop()
            query.progress.save(self._state)
        committer.finish({query.name: self._written(query) for query in queries})
        for letters in late if not gone else ():
            letters.finish()

    def _written(self, query: Query) -> Offsets:
        """What is in the table by the checkpoint: also what no report of this run told of."""
        committed = self._state.committed(query.name) if self._state.local else None
        return committed.offsets if committed else query.progress.offsets

    def _queries(self) -> Iterator[Query]:
        for sink in self.pipeline.sinks.values():
            yield self._query(sink.name, self._sink_starter(sink))
        for source in self.pipeline.sources.values():
            if source.dead_letter is not None:
                yield self._query(f"{source.name}.dead_letter", self._dead_letter_starter(source))

    def _query(self, name: str, start: Callable[[], StreamingQuery]) -> Query:
        return Query(name, start, Progress.load(self._state, name))

    def _sink_starter(self, sink: Sink) -> Callable[[], StreamingQuery]:
        def start() -> StreamingQuery:
            frame = sink_frame(self._spark, self.pipeline, sink)
            sinks.check_schema(self._spark, sink, frame)
            return sinks.start(self.pipeline, sink, frame, self._state.checkpoint(sink.name))

        return start

    def _dead_letter_starter(self, source: Source) -> Callable[[], StreamingQuery]:
        topic = source.dead_letter
        assert topic is not None
        name = f"{source.name}.dead_letter"

        def start() -> StreamingQuery:
            built = views.build(self._spark, self.pipeline, only=frozenset({source.name}))
            letters = decoding.dead_letters(built.decoded[source.name], source, self.pipeline.name)
            trigger = _dead_letter_trigger(self.pipeline)
            return sinks.start_kafka(
                self.pipeline, letters, topic, name, self._state.checkpoint(name), trigger
            )

        return start


def sink_frame(spark: SparkSession, pipeline: Pipeline, sink: Sink) -> DataFrame:
    """The stream that a sink writes."""
    upstream = graph.sink_lineage(pipeline, sink)
    # Continuous processing has no operator for counts.
    counted = sink.trigger.kind != "continuous"
    return views.build(spark, pipeline, counted=counted, only=upstream.names).frames[sink.view]


def check_sources(pipeline: Pipeline, client: KafkaClient) -> None:
    """Topics to read must be there."""
    there = client.topics()
    for source in pipeline.sources.values():
        missing = [topic for topic in source.named_topics() if topic not in there]
        if missing:
            raise PipelineError(
                f"line {source.line}: source {source.name!r}: there is no topic {', '.join(missing)} at "
                f"{pipeline.bootstrap_servers}"
            )


def create_targets(pipeline: Pipeline, client: KafkaClient) -> None:
    """Topics to write are made where they are missing, with the broker's defaults."""
    there = client.topics()
    written = [sink.target for sink in pipeline.sinks.values() if sink.kind == "kafka"]
    written += [source.dead_letter for source in pipeline.sources.values() if source.dead_letter]
    for topic in written:
        if topic not in there:
            client.create_topic(topic)


def once(pipeline: Pipeline) -> Pipeline:
    """The same job with every sink running over what is there now, then ending."""
    now = Trigger("available_now")
    changed = {name: dataclasses.replace(sink, trigger=now) for name, sink in pipeline.sinks.items()}
    return dataclasses.replace(pipeline, sinks=changed)


def _dead_letter_trigger(pipeline: Pipeline) -> Trigger:
    """Ends with the sinks where they all end; else their shortest interval."""
    triggers = [sink.trigger for sink in pipeline.sinks.values()]
    if all(trigger.kind == "available_now" for trigger in triggers):
        return Trigger("available_now")
    intervals = [trigger.interval for trigger in triggers if trigger.kind == "interval"]
    return Trigger("interval", min(intervals, key=milliseconds, default="1 second"))
