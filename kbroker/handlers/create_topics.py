"""CreateTopics 0–7: new topics, each judged for itself (KIP-4, KIP-464 defaults, KIP-525 configs in the
answer).

Every partition of every topic is led by this one broker, so a manual assignment can only name it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from kbroker.config.description import describe_topic
from kbroker.errors import describe
from kbroker.operations.topics import create_topic, validate_topic
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kbroker.requests.long_requests import Steps
from kbroker.requests.traits import Traits
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import NewTopic, count_problem

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

TRAITS = Traits(refuses_mutations_since=6)


def handle(
    broker: Broker, request: CreateTopicsRequest, context: RequestContext
) -> Steps[CreateTopicsResponse | Pending[CreateTopicsResponse]]:
    resources = broker.resources(context)
    occurrences = Counter(topic.name for topic in request.topics)
    too_many = count_problem(
        broker, (len(topic.assignments) or topic.num_partitions for topic in request.topics)
    )
    results: list[CreatableTopicResult | Pending[CreatableTopicResult]] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if occurrences[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is named twice.")
            if too_many is not None:
                raise too_many
            results.append(_create(resources, _new_topic(topic), validate_only=request.validate_only))
        except Exception as error:
            results.append(_refused(topic.name, error))
        yield None
    return join(results, lambda topics: CreateTopicsResponse(topics=topics))


def _new_topic(asked: CreatableTopic) -> NewTopic:
    return NewTopic(
        asked.name,
        asked.num_partitions,
        asked.replication_factor,
        {config.name: config.value for config in asked.configs},
        [(assignment.partition_index, assignment.broker_ids) for assignment in asked.assignments],
    )


def _create(
    resources: Resources, new: NewTopic, *, validate_only: bool
) -> CreatableTopicResult | Pending[CreatableTopicResult]:
    created = partial(_created, resources)
    if validate_only:
        return created(validate_topic(resources, new))
    return mapped(create_topic(resources, new), created, otherwise=partial(_refused, new.name))


def _created(resources: Resources, topic: Topic) -> CreatableTopicResult:
    if not resources.may_topic(AclOperation.DESCRIBE_CONFIGS, topic.name):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(
                name=config.name,
                value=topic.configs.get(config.name, config.value),
                read_only=config.read_only,
                config_source=config.source,
                is_sensitive=config.is_sensitive,
            )
            for config in describe_topic(resources.broker.settings, topic.configs)
        ],
    )


def _refused(name: str, error: Exception) -> CreatableTopicResult:
    code, message = describe(error)
    return CreatableTopicResult(name=name, error_code=code, error_message=message)
