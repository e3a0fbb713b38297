"""Progress as consumer-group offsets, so that Kafka's tools show the lag of a pipeline.

The job does not depend on these commits: a failure is told once, and tried again after a pause over a new
connection.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from kbroker.pipeline.errors import KafkaUnreachable
from kbroker.pipeline.kafka_client import KafkaClient, Offsets, connected
from kbroker.pipeline.spec import Pipeline

logger = logging.getLogger("kbroker.pipeline")
PAUSE_SECONDS = 5.0


class Committer:
    """Commits what is new, query by query, as the group `<progress_group>.<query>`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._committed: dict[str, Offsets] = {}
        self._connection = ExitStack()
        self._client: KafkaClient | None = None
        self._not_before = 0.0
        self._failing = False

    def commit(self, query: str, offsets: Offsets, now: float) -> None:
        """`now` is monotonic, in seconds."""
        if now >= self._not_before and not self._committed_now(query, offsets):
            self._not_before = now + PAUSE_SECONDS

    def finish(self, offsets: Mapping[str, Offsets]) -> None:
        """Commit, at the end of a run, how far each query is: without a pause, until a commit fails."""
        for query, each in offsets.items():
            if not self._committed_now(query, each):
                return

    def _committed_now(self, query: str, offsets: Offsets) -> bool:
        """False where Kafka refuses it, or does not answer."""
        from kbroker.kafka_python import load

        group = self._pipeline.progress_group
        if group is None or not offsets or self._committed.get(query) == offsets:
            return True
        kafka_error = load().errors.KafkaError
        try:
            if self._client is None:
                self._client = self._connection.enter_context(connected(self._pipeline))
            self._client.commit(f"{group}.{query}", offsets)
        except (kafka_error, KafkaUnreachable) as error:
            if not self._failing:
                logger.warning("cannot commit progress as group %s.%s: %s", group, query, error)
            self._failing = True
            self.close()
            return False
        self._failing = False
        self._committed[query] = {topic: dict(partitions) for topic, partitions in offsets.items()}
        return True

    def close(self) -> None:
        self._client = None
        self._connection.close()
