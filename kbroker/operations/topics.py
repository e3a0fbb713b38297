"""Topics made, grown and deleted. What a caller may not do, or a topic may not be, raises ApiError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import check_growth, check_new_topic, check_not_metadata
from kbroker.topics.names import INTERNAL_TOPICS, check_name
from kbroker.topics.registry import Topic, new_topic_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.requests.resources import Resources
    from kbroker.topics.creation import NewTopic


def create_topic(resources: Resources, new: NewTopic) -> Pending[Topic]:
    """The topic, once it is durable and visible."""
    check_not_metadata(new.name)
    resources.check_creation(new.name)
    return resources.create_topic(check_new_topic(resources.broker, new))


def may_auto_create(resources: Resources) -> bool:
    """Whether asking for a topic creates it.

    A default replication factor that one broker cannot give makes a topic unknown, not invalid.
    """
    settings = resources.broker.settings
    return bool(settings["auto.create.topics.enable"] and settings["default.replication.factor"] == 1)


def topic_to_write(resources: Resources, name: str) -> Topic | Pending[Topic]:
    """The topic, made with the broker's defaults if there is none and asking for it may create it."""
    try:
        topic = resources.topic(name, AclOperation.WRITE)
        if name in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by the broker alone.")
        return topic
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        check_name(name)
        if name in INTERNAL_TOPICS or not may_auto_create(resources):
            raise
    # A Pending of its own: others may wait for the same creation, and who goes away must not abandon it.
    made: Pending[Topic] = Pending()
    resources.auto_create_topic(name).then(made.follow)
    return made


def validate_topic(resources: Resources, new: NewTopic) -> Topic:
    """The topic as it would be created now."""
    check_not_metadata(new.name)
    resources.check_creation(new.name)
    checked = check_new_topic(resources.broker, new)
    resources.count_mutations(checked.partitions)  # as if it were created, as in Kafka
    epoch_base = resources.broker.cluster.first_leader_epoch_base()
    return Topic(checked.name, new_topic_id(), checked.partitions, epoch_base, checked.configs)


def add_partitions(
    resources: Resources, name: str, count: int, assignments: Sequence[list[int]] | None = None
) -> Pending[Topic]:
    """The topic with so many partitions in all, once that is durable."""
    return resources.add_partitions(validate_partitions(resources, name, count, assignments), count)


def validate_partitions(
    resources: Resources, name: str, count: int, assignments: Sequence[list[int]] | None = None
) -> Topic:
    """The topic, if it may get so many partitions."""
    topic = resources.topic(name, AclOperation.ALTER)
    if name in INTERNAL_TOPICS:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"The broker decides how many partitions {name} has."
        )
    check_growth(resources.broker, topic, count, assignments)
    return topic


def delete_topic(resources: Resources, topic: Topic) -> Pending[Topic]:
    """The topic, which is gone at once, when that is durable."""
    check_deletion_enabled(resources)
    if topic.name in INTERNAL_TOPICS:
        raise ApiError(
            ErrorCode.TOPIC_DELETION_DISABLED, f"{topic.name} shows what the broker keeps elsewhere."
        )
    return resources.delete_topic(topic)


def check_deletion_enabled(resources: Resources) -> None:
    if not resources.broker.settings["delete.topic.enable"]:
        raise ApiError(
            ErrorCode.TOPIC_DELETION_DISABLED, "Topics cannot be deleted: delete.topic.enable is false."
        )
