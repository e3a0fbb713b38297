"""CreateTopics 0–7: new topics, each judged for itself (KIP-4, KIP-464 defaults, KIP-525 configs in the
answer).

Every partition of every topic is led by this one broker, so a manual assignment can only name it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kbroker.config.description import describe_topic
from kbroker.errors import describe
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
from kbroker.topics.creation import NewTopic, check_new_topic, count_problem
from kbroker.topics.registry import new_topic_id

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.topics.registry import Topic


def handle(
    broker: Broker, request: CreateTopicsRequest, context: RequestContext
) -> Steps[CreateTopicsResponse | Pending[CreateTopicsResponse]]:
    occurrences = Counter(topic.name for topic in request.topics)
    too_many = count_problem(broker, request.topics)
    results: list[CreatableTopicResult | Pending[CreatableTopicResult]] = []
    for topic in _without_repeats(request.topics):
        try:
            if occurrences[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is named twice.")
            if too_many is not None:
                raise too_many
            results.append(_create(broker, topic, validate_only=request.validate_only))
        except Exception as error:
            results.append(_refused(topic.name, error))
        yield None
    return join(results, lambda topics: CreateTopicsResponse(topics=topics))


def _create(
    broker: Broker, asked: CreatableTopic, *, validate_only: bool
) -> CreatableTopicResult | Pending[CreatableTopicResult]:
    new = check_new_topic(broker, asked)
    if validate_only:
        return _created(broker, new, new_topic_id())

    def created(topic: Topic) -> CreatableTopicResult:
        return _created(broker, new, topic.topic_id)

    return mapped(broker.create_topic(new), created, otherwise=lambda error: _refused(new.name, error))


def _created(broker: Broker, new: NewTopic, topic_id: bytes) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=new.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=new.partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(
                name=config.name,
                value=new.configs.get(config.name, config.value),
                read_only=config.read_only,
                config_source=config.source,
                is_sensitive=config.is_sensitive,
            )
            for config in describe_topic(broker.settings, new.configs)
        ],
    )


def _refused(name: str, error: Exception) -> CreatableTopicResult:
    code, message = describe(error)
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _without_repeats(topics: list[CreatableTopic]) -> list[CreatableTopic]:
    return list({topic.name: topic for topic in topics}.values())
