"""CreatePartitions 0–3: more partitions for existing topics (KIP-195). They can only grow."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kbroker.requests.long_requests import Steps
from kbroker.topics.creation import MAX_PARTITIONS_PER_REQUEST, check_assignments

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.topics.registry import Topic

Result = CreatePartitionsTopicResult | Pending[CreatePartitionsTopicResult]


def handle(
    broker: Broker, request: CreatePartitionsRequest, context: RequestContext
) -> Steps[CreatePartitionsResponse | Pending[CreatePartitionsResponse]]:
    seen = Counter(topic.name for topic in request.topics)
    results: list[Result] = []
    for asked in {topic.name: topic for topic in request.topics}.values():
        try:
            if seen[asked.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "The topic is named twice.")
            topic = _check(broker, asked)
            if request.validate_only:
                results.append(_result(asked.name, None))
            else:
                results.append(_grow(broker, topic, asked.count))
        except Exception as error:
            results.append(_result(asked.name, error))
        yield None
    return join(results, lambda topics: CreatePartitionsResponse(results=topics))


def _check(broker: Broker, asked: CreatePartitionsTopic) -> Topic:
    topic = broker.topics.get(asked.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    added = asked.count - topic.partitions
    if added == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"The topic already has {asked.count} partition(s).")
    if added < 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic has {topic.partitions} partition(s); {asked.count} would be fewer.",
        )
    if added > MAX_PARTITIONS_PER_REQUEST:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"One request may create {MAX_PARTITIONS_PER_REQUEST} partitions at most, not {added}.",
        )
    if asked.assignments is not None:
        if len(asked.assignments) != added:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{len(asked.assignments)} assignment(s) for {added} new partition(s).",
            )
        check_assignments(broker, asked.assignments)
    return topic


def _grow(broker: Broker, topic: Topic, count: int) -> Result:
    def grown(_: Topic) -> CreatePartitionsTopicResult:
        return _result(topic.name, None)

    growing = broker.topics.add_partitions(topic, count)
    return mapped(growing, grown, otherwise=lambda error: _result(topic.name, error))


def _result(name: str, error: Exception | None) -> CreatePartitionsTopicResult:
    code, message = (ErrorCode.NONE, None) if error is None else describe(error)
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
