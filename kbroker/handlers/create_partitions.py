"""CreatePartitions 0–3: more partitions for existing topics (KIP-195). They can only grow."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.topics import add_partitions, validate_partitions
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kbroker.requests.long_requests import Steps
from kbroker.requests.traits import Traits

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

Result = CreatePartitionsTopicResult | Pending[CreatePartitionsTopicResult]

TRAITS = Traits(refuses_mutations_since=3)


def handle(
    broker: Broker, request: CreatePartitionsRequest, context: RequestContext
) -> Steps[CreatePartitionsResponse | Pending[CreatePartitionsResponse]]:
    resources = broker.resources(context)
    seen = Counter(topic.name for topic in request.topics)
    results: list[Result] = []
    for asked in {topic.name: topic for topic in request.topics}.values():
        try:
            if seen[asked.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "The topic is named twice.")
            results.append(_grow(resources, asked, validate_only=request.validate_only))
        except Exception as error:
            results.append(_result(asked.name, error))
        yield None
    return join(results, lambda topics: CreatePartitionsResponse(results=topics))


def _grow(resources: Resources, asked: CreatePartitionsTopic, *, validate_only: bool) -> Result:
    name, assignments = asked.name, None
    if asked.assignments is not None:
        assignments = [assignment.broker_ids for assignment in asked.assignments]
    if validate_only:
        topic = validate_partitions(resources, name, asked.count, assignments)
        resources.count_mutations(asked.count - topic.partitions)  # as if they were created, as in Kafka
        return _result(name, None)
    growing = add_partitions(resources, name, asked.count, assignments)
    return mapped(growing, lambda _: _result(name, None), otherwise=lambda error: _result(name, error))


def _result(name: str, error: Exception | None) -> CreatePartitionsTopicResult:
    code, message = (ErrorCode.NONE, None) if error is None else describe(error)
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
