"""Topics and their partitions, from code in the process: made, grown, described, trimmed and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from kbroker.local.calls import Access
from kbroker.local.configs import ConfigValue, config_text
from kbroker.operations.auditing import audited
from kbroker.requests.long_requests import each
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.operations.partitions import PartitionDescription
    from kbroker.pending import Pending
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_THE_BROKERS = -1
"""As many partitions as num.partitions says."""


class TopicDescription(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int
    configs: dict[str, str]
    """Those that are set for this topic; empty for who may not know them."""
    internal: bool


class Topics(Access):
    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, ConfigValue] | None = None,
        *,
        if_not_exists: bool = False,
    ) -> TopicDescription:
        """The topic, once it is durable. ``partitions``: as many as num.partitions says, if not given.

        ``if_not_exists``: one that is there already is fine, whatever its partitions and configs.
        """
        from kbroker.operations.topics import create_topic
        from kbroker.topics.creation import NewTopic, count_problem

        new = NewTopic(
            name,
            _THE_BROKERS if partitions is None else partitions,
            configs={each: config_text(value) for each, value in (configs or {}).items()},
        )

        def create(resources: Resources) -> Topic | Pending[Topic]:
            if if_not_exists:
                found = resources.find_topic(name, AclOperation.DESCRIBE)
                if found is not None:
                    return found
            too_many = count_problem(resources.broker, [new.num_partitions])
            if too_many is not None:
                raise too_many
            return audited(
                resources,
                "TOPIC",
                name,
                lambda: create_topic(resources, new),
                {"partitions": new.num_partitions},
            )

        return _described(self._resources, await self._ask(create))

    async def topics(self, prefix: str = "") -> list[TopicDescription]:
        """All whose names begin with the prefix, by name."""
        from kbroker.operations.topic_descriptions import EVERY_TOPIC, list_topics

        def find(resources: Resources) -> Steps[list[TopicDescription]]:
            page = yield from list_topics(resources, limit=EVERY_TOPIC, prefix=prefix)
            return (yield from each(page.topics, lambda topic: _described(resources, topic)))

        return await self._ask(find)

    async def describe_topic(self, name: str) -> TopicDescription:
        def find(resources: Resources) -> TopicDescription:
            return _described(resources, resources.topic(name, AclOperation.DESCRIBE))

        return await self._ask(find)

    async def delete_topic(self, name: str) -> None:
        """With its records. Settles when that is durable."""
        from kbroker.operations.topics import delete_topic

        def delete(resources: Resources) -> Pending[Topic]:
            return audited(
                resources,
                "TOPIC",
                name,
                lambda: delete_topic(resources, resources.topic_to_delete(name)),
            )

        await self._ask(delete)

    async def add_partitions(self, name: str, count: int) -> TopicDescription:
        """The topic with so many partitions in all."""
        from kbroker.operations.topics import add_partitions

        def add(resources: Resources) -> Pending[Topic]:
            return audited(
                resources,
                "TOPIC",
                name,
                lambda: add_partitions(resources, name, count),
                {"partitions": count},
            )

        return _described(self._resources, await self._ask(add))

    async def partitions(self, topic: str) -> list[PartitionDescription]:
        """Offsets, sizes and leaders of all partitions."""
        from kbroker.operations.partitions import describe_partitions

        def find(resources: Resources) -> Steps[list[PartitionDescription]]:
            broker = resources.broker
            partitions = resources.topic(topic, AclOperation.DESCRIBE).partitions
            client = broker.cluster.by_first_listener("127.0.0.1")
            return describe_partitions(resources, topic, client, 0, partitions)

        return await self._ask(find)

    async def delete_records(self, topic: str, partition: int, before: int | Literal["latest"]) -> int:
        """Forget the records before an offset, or all that are there. The log start offset then."""
        from kbroker.operations.deletion import HIGH_WATERMARK, delete_records
        from kbroker.operations.partitions import topic_with_partition

        def delete(resources: Resources) -> int | Pending[int]:
            topic_with_partition(resources, topic, partition, AclOperation.DELETE)
            return audited(
                resources,
                "TOPIC",
                topic,
                lambda: delete_records(
                    resources, topic, partition, HIGH_WATERMARK if before == "latest" else before
                ),
                {"partition": partition, "before": before},
            )

        return await self._ask(delete)


def _described(resources: Resources, topic: Topic) -> TopicDescription:
    from kbroker.operations.topic_descriptions import is_internal

    shows_configs = resources.may_topic(AclOperation.DESCRIBE_CONFIGS, topic.name)
    return TopicDescription(
        topic.name,
        topic.topic_id,
        topic.partitions,
        dict(topic.configs) if shows_configs else {},
        is_internal(topic),
    )
