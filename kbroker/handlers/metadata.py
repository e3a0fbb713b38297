"""Metadata 0–13: the broker, and topics by name, by id (KIP-516) or all of them.

A topic that does not exist is created where both the client and auto.create.topics.enable allow it. Unlike
Kafka, which answers UNKNOWN_TOPIC_OR_PARTITION first, the answer waits for the new topic and already holds
it. A topic that was deleted a moment ago is unknown, as it is at the first look in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.topics import may_auto_create
from kbroker.pending import Pending, join
from kbroker.protocol import topic_ids
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kbroker.requests.long_requests import Steps, each, lazily
from kbroker.security.acls import AclOperation, AclResourceType
from kbroker.topics.names import INTERNAL_TOPICS, READABLE_TOPICS, check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_NO_ID = bytes(16)
_FIRST_BY_TOPIC_ID = 12


def handle(
    broker: Broker, request: MetadataRequest, context: RequestContext
) -> Steps[MetadataResponse | Pending[MetadataResponse]]:
    resources = broker.resources(context)
    asked = request.topics
    if asked is not None and context.api_version >= topic_ids.METADATA_SINCE:
        by_id_too_early = context.api_version < _FIRST_BY_TOPIC_ID and any(
            topic.name is None or topic.topic_id != _NO_ID for topic in asked
        )
        if by_id_too_early:
            return _refused(asked, ErrorCode.INVALID_REQUEST)
        if any(topic.name is None and topic.topic_id == _NO_ID for topic in asked):
            return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(*node) for node in broker.cluster.nodes(context)],
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.cluster.controller_id(),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = resources.cluster_operations()
    if asked is None or (not asked and context.api_version == 0):
        response.topics = lazily(
            resources.topics(AclOperation.DESCRIBE), lambda topic: _known(resources, topic, request, context)
        )
        return response
    topics = yield from each(
        _once(resources, asked), lambda topic: _topic(resources, topic, request, context)
    )

    def answer(topics: list[MetadataResponseTopic]) -> MetadataResponse:
        response.topics = topics
        return response

    return join(topics, answer)


def _refused(asked: list[MetadataRequestTopic], code: ErrorCode) -> MetadataResponse:
    """The whole request makes no sense: nothing but the code is told."""
    return MetadataResponse(
        error_code=code,
        topics=lazily(
            asked,
            lambda topic: MetadataResponseTopic(
                error_code=code, name=topic.name or "", topic_id=topic.topic_id
            ),
        ),
    )


def _once(resources: Resources, asked: list[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """A topic that is named twice, by name or by id, is answered once."""
    by_topic: dict[str | bytes | None, MetadataRequestTopic] = {}
    for state in asked:
        topic = (
            resources.find_topic(state.topic_id, AclOperation.DESCRIBE) if state.topic_id != _NO_ID else None
        )
        key = topic.name if topic is not None else state.topic_id if state.topic_id != _NO_ID else state.name
        by_topic.setdefault(key, state)
    return by_topic.values()


def _topic(
    resources: Resources, asked: MetadataRequestTopic, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic | Pending[MetadataResponseTopic]:
    by_id = asked.topic_id != _NO_ID
    name = asked.name or ""
    try:
        topic = resources.topic(asked.topic_id if by_id else name, AclOperation.DESCRIBE)
        return _known(resources, topic, request, context)
    except ApiError as error:
        if by_id:
            # The topic's name is unknown: null where the version can say that.
            unknown_name = None if context.api_version >= 12 else ""
            return MetadataResponseTopic(error_code=error.code, name=unknown_name, topic_id=asked.topic_id)
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return _unknown(name, error)
    try:
        check_name(name)
        may_create = request.allow_auto_topic_creation and may_auto_create(resources)
        if not may_create or name in INTERNAL_TOPICS - READABLE_TOPICS:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return _create(resources, name, request, context)
    except ApiError as refusal:
        unknown = _unknown(name, refusal)
        if refusal.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            _add_operations(resources, unknown, request)
        return unknown


def _create(
    resources: Resources, name: str, request: MetadataRequest, context: RequestContext
) -> Pending[MetadataResponseTopic]:
    """Not `mapped`: others may wait for the same creation, and who goes away must not abandon it."""
    result: Pending[MetadataResponseTopic] = Pending()

    def done(creation: Pending[Topic]) -> None:
        try:
            result.resolve(_known(resources, creation.result(), request, context))
        except Exception as error:
            result.resolve(_unknown(name, error))

    resources.auto_create_topic(name).then(done)
    return result


def _unknown(name: str, error: Exception) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=describe(error)[0], name=name, is_internal=name in INTERNAL_TOPICS
    )


def _known(
    resources: Resources, topic: Topic, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    cluster, none = resources.broker.cluster, ErrorCode.NONE
    epoch = cluster.leader_epoch(topic)

    def partition(index: int) -> MetadataResponsePartition:
        replicas = cluster.replicas(topic, index)
        leader = cluster.leader(topic, index, context)
        return MetadataResponsePartition(none, index, leader, epoch, replicas, replicas, [])

    result = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=lazily(range(topic.partitions), partition),
    )
    _add_operations(resources, result, request)
    return result


def _add_operations(resources: Resources, topic: MetadataResponseTopic, request: MetadataRequest) -> None:
    if request.include_topic_authorized_operations:
        topic.topic_authorized_operations = resources.authorized_operations(
            AclResourceType.TOPIC, topic.name or ""
        )
