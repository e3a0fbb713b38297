"""Topics: created, listed, described, altered, deleted; the offsets of their partitions."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.grpc.messages import ours
from kbroker.grpc.records import limit
from kbroker.grpc.statuses import GrpcError, Status
from kbroker.network.awaiting import settled
from kbroker.operations.auditing import audited
from kbroker.operations.configs import alter_and_tell_configs
from kbroker.operations.partitions import describe_partitions as described_partitions
from kbroker.operations.topic_descriptions import is_internal, replication_factor
from kbroker.operations.topic_descriptions import list_topics as listed_topics
from kbroker.operations.topics import add_partitions, validate_topic
from kbroker.operations.topics import create_topic as created_topic
from kbroker.operations.topics import delete_topic as deleted_topic
from kbroker.requests.admin_changes import shown_config
from kbroker.requests.long_requests import each
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import NewTopic, count_problem

if TYPE_CHECKING:
    from kbroker.cluster.interface import Connected
    from kbroker.grpc.call import Call
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_DEFAULT: Final = -1
_MOST: Final = 1000  # of a page
_TOPIC, _LISTED, _DELETED = ours("Topic"), ours("ListTopicsResponse"), ours("DeleteTopicResponse")
_PARTITION, _PARTITIONS = ours("Partition"), ours("DescribePartitionsResponse")


async def create_topic(call: Call, request: Any) -> Any:
    resources = call.resources
    new = NewTopic(
        request.name,
        request.partitions if request.HasField("partitions") else _DEFAULT,
        request.replication_factor if request.HasField("replication_factor") else _DEFAULT,
        dict(request.configs),
    )
    too_many = count_problem(call.broker, [new.num_partitions])
    if too_many is not None:
        raise too_many
    if request.validate_only:
        return _described(resources, validate_topic(resources, new))
    configs = {name: shown_config(ResourceType.TOPIC, name, text) for name, text in new.configs.items()}
    details = {"partitions": new.num_partitions, **({"configs": configs} if configs else {})}
    topic = await settled(
        audited(resources, "TOPIC", new.name, lambda: created_topic(resources, new), details)
    )
    return _described(resources, topic)


async def list_topics(call: Call, request: Any) -> Any:
    resources = call.resources
    most = limit(request.limit, "limit", _MOST, _MOST)
    page = await call.in_turns(
        listed_topics(resources, limit=most, prefix=request.prefix, after=request.after)
    )
    topics = await call.in_turns(each(page.topics, lambda topic: _shown(resources, topic)))
    return _LISTED(topics=topics, next=page.topics[-1].name if page.more else "")


async def describe_topic(call: Call, request: Any) -> Any:
    return _described(call.resources, call.resources.topic(request.name, AclOperation.DESCRIBE))


async def alter_topic(call: Call, request: Any) -> Any:
    resources, name = call.resources, request.name
    changes = [Change(config, Operation.SET, value) for config, value in request.set_configs.items()]
    changes += [Change(config, Operation.DELETE, None) for config in request.reset_configs]
    count = request.partitions if request.HasField("partitions") else None
    if changes and count is not None:
        raise GrpcError(
            Status.INVALID_ARGUMENT, "Alter configs, or add partitions: one after the other, not together."
        )
    if changes:
        await settled(alter_and_tell_configs(resources, ResourceType.TOPIC, name, changes))
    if count is not None:
        details = {"partitions": count}
        await settled(
            audited(resources, "TOPIC", name, lambda: add_partitions(resources, name, count), details)
        )
    return _described(resources, resources.topic(name, AclOperation.DESCRIBE))


async def delete_topic(call: Call, request: Any) -> Any:
    resources, name = call.resources, request.name

    def change() -> Any:
        return deleted_topic(resources, resources.topic_to_delete(name))

    topic: Topic = await settled(audited(resources, "TOPIC", name, change))
    return _DELETED(id=_id(topic))


async def describe_partitions(call: Call, request: Any) -> Any:
    first, most = request.first, limit(request.limit, "limit", _MOST, _MOST)
    found = await call.in_turns(
        described_partitions(call.resources, request.topic, _reached(call), first, most)
    )
    return _PARTITIONS(
        partitions=[
            _PARTITION(
                partition=one.partition,
                log_start_offset=one.offsets.log_start_offset,
                last_stable_offset=one.offsets.last_stable_offset,
                high_watermark=one.offsets.high_watermark,
                log_end_offset=one.offsets.log_end_offset,
                leader=one.replicas.leader,
                leader_epoch=one.replicas.leader_epoch,
            )
            for one in found
        ]
    )


def _reached(call: Call) -> Connected:
    """How the caller would reach the broker with Kafka's protocol."""
    return call.broker.cluster.by_first_listener(call.connection.get_extra_info("sockname")[0])


def _described(resources: Resources, topic: Topic) -> Any:
    """With the configs that are not the broker's defaults, for who may know them."""
    shown = _shown(resources, topic)
    if resources.may_topic(AclOperation.DESCRIBE_CONFIGS, topic.name):
        shown.configs.update(topic.configs)
    return shown


def _shown(resources: Resources, topic: Topic) -> Any:
    return _TOPIC(
        name=topic.name,
        id=_id(topic),
        partitions=topic.partitions,
        replication_factor=replication_factor(resources, topic),
        internal=is_internal(topic),
    )


def _id(topic: Topic) -> str:
    """As Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic.topic_id)[:22].decode()
