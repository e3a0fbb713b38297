"""What the pipeline asks Kafka itself, without Spark: topics, offsets, and commits of its progress."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kbroker.pipeline.errors import KafkaUnreachable

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

    from kbroker.pipeline.spec import Pipeline

Offsets = dict[str, dict[int, int]]
"""Topic, partition: offset."""

FIRST_ANSWER_MS = 10_000
_TAKEN_OVER = (
    "security.protocol", "sasl.mechanism", "ssl.cafile", "request.timeout.ms", "client.id",
)  # fmt: skip
_JAAS = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


def client_settings(pipeline: Pipeline) -> dict[str, Any]:
    """The job's Kafka settings (Java's names) as kafka-python's."""
    settings: dict[str, Any] = {
        "bootstrap_servers": pipeline.bootstrap_servers.split(","),
        "bootstrap_timeout_ms": FIRST_ANSWER_MS,
    }
    for name in _TAKEN_OVER:
        if name in pipeline.kafka:
            value: Any = pipeline.kafka[name]
            settings[name.replace(".", "_")] = int(value) if value.isdecimal() else value
    if "ssl.truststore.location" in pipeline.kafka and pipeline.kafka.get("ssl.truststore.type") == "PEM":
        settings["ssl_cafile"] = pipeline.kafka["ssl.truststore.location"]
    for name, value in _JAAS.findall(pipeline.kafka.get("sasl.jaas.config", "")):
        settings[f"sasl_plain_{name}"] = value
    return settings


class KafkaClient:
    """Short questions over one connection."""

    def __init__(self, admin: KafkaAdminClient) -> None:
        self._admin = admin

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        described = self._admin.describe_topics(list(topics)) if topics else []
        return {
            each["name"]: sorted(part["partition_index"] for part in each["partitions"]) for each in described
        }

    def create_topic(self, name: str) -> None:
        from kafka.errors import TopicAlreadyExistsError

        try:
            self._admin.create_topics([name], wait_for_metadata=True)
        except TopicAlreadyExistsError:
            return

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        from kafka.admin import OffsetSpec

        return self._offsets(topics, OffsetSpec.LATEST)

    def start_offsets(self, topics: Iterable[str]) -> Offsets:
        from kafka.admin import OffsetSpec

        return self._offsets(topics, OffsetSpec.EARLIEST)

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """The first offset of that time or later; -1 where there is none."""
        return self._offsets(topics, timestamp_ms)

    def commit(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Raises KafkaError where a partition's commit is refused."""
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        answers = self._admin.alter_group_offsets(
            group,
            {
                TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
                for topic, partitions in offsets.items()
                for partition, offset in partitions.items()
            },
        )
        for error in answers.values():
            if error is not None and getattr(error, "errno", 0) != 0:
                raise error()

    def _offsets(self, topics: Iterable[str], which: Any) -> Offsets:
        from kafka import TopicPartition

        wanted = {
            TopicPartition(topic, partition): which
            for topic, partitions in self.partitions(list(topics)).items()
            for partition in partitions
        }
        found: Offsets = {}
        if wanted:
            for where, answer in self._admin.list_partition_offsets(wanted).items():
                found.setdefault(where.topic, {})[where.partition] = int(answer.offset)
        return found


@contextmanager
def connected(pipeline: Pipeline) -> Iterator[KafkaClient]:
    """A client, closed at the end; PipelineError where no broker answers."""
    from kbroker.kafka_python import load

    kafka = load()
    try:
        admin = kafka.KafkaAdminClient(**client_settings(pipeline))
    except kafka.errors.KafkaError as error:
        raise KafkaUnreachable(f"no Kafka answers at {pipeline.bootstrap_servers}: {error}") from None
    try:
        yield KafkaClient(admin)
    finally:
        admin.close()
