"""DeleteTopics 0–6: by name, from version 6 also by topic id (KIP-516)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kbroker.errors import ApiError, describe
from kbroker.joining import join
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kbroker.storage.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext
    from kbroker.topics import Topic

_NO_ID = bytes(16)


def handle(
    broker: Broker, request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse | Pending[DeleteTopicsResponse]:
    if context.api_version >= 6:
        asked = request.topics
    else:
        asked = [DeleteTopicState(name=name) for name in request.topic_names]
    enabled = broker.settings["delete.topic.enable"]
    seen = Counter(topic.name if topic.name is not None else topic.topic_id for topic in asked)
    results: list[DeletableTopicResult | Pending[DeletableTopicResult]] = []
    for topic in asked:
        try:
            if not enabled:
                code = (
                    ErrorCode.INVALID_REQUEST
                    if context.api_version < 3
                    else ErrorCode.TOPIC_DELETION_DISABLED
                )
                raise ApiError(code, "delete.topic.enable is false.")
            if topic.name is not None and topic.topic_id != _NO_ID:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Name a topic by its name or its id, not both.")
            if seen[topic.name if topic.name is not None else topic.topic_id] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "The topic is named twice.")
            results.append(_delete(broker, _find(broker, topic)))
        except Exception as error:
            results.append(_result(topic.name, topic.topic_id, error))
    return join(results, lambda responses: DeleteTopicsResponse(responses=responses))


def _find(broker: Broker, asked: DeleteTopicState) -> Topic:
    if asked.name is not None:
        topic = broker.topics.get(asked.name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic = broker.topics.get_by_id(asked.topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None:
        raise ApiError(missing)
    return topic


def _delete(broker: Broker, topic: Topic) -> Pending[DeletableTopicResult]:
    result: Pending[DeletableTopicResult] = Pending()

    def done(deletion: Pending[Topic]) -> None:
        try:
            deletion.result()
            result.resolve(_result(topic.name, topic.topic_id, None))
        except Exception as error:
            result.resolve(_result(topic.name, topic.topic_id, error))

    broker.topics.delete(topic).then(done)
    return result


def _result(name: str | None, topic_id: bytes, error: Exception | None) -> DeletableTopicResult:
    code, message = (ErrorCode.NONE, None) if error is None else describe(error)
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
