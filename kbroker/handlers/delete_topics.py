"""DeleteTopics 0–6: by name, from version 6 also by topic id (KIP-516).

A topic that a request names more than once, by name or by id, is not deleted and answered once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.topics import check_deletion_enabled, delete_topic
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kbroker.requests.long_requests import Steps
from kbroker.requests.traits import Traits
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_NO_ID = bytes(16)
_FIRST_BY_ID = 6
_FIRST_WITH_DISABLED = 3

Result = DeletableTopicResult | Pending[DeletableTopicResult]

TRAITS = Traits(refuses_mutations_since=5)


def handle(
    broker: Broker, request: DeleteTopicsRequest, context: RequestContext
) -> Steps[DeleteTopicsResponse | Pending[DeleteTopicsResponse]]:
    if context.api_version >= _FIRST_BY_ID:
        asked = request.topics
    else:
        asked = [DeleteTopicState(name=name) for name in request.topic_names]
    resources = broker.resources(context)
    results: list[Result] = []
    for same in _by_topic(resources, asked):
        try:
            results.append(_delete(resources, same))
        except ApiError as error:
            if error.code is ErrorCode.TOPIC_DELETION_DISABLED and context.api_version < _FIRST_WITH_DISABLED:
                error = ApiError(ErrorCode.INVALID_REQUEST, error.message)
            results.append(_refused(resources, same, error))
        yield None
    return join(results, lambda responses: DeleteTopicsResponse(responses=responses))


def _by_topic(resources: Resources, asked: list[DeleteTopicState]) -> list[list[DeleteTopicState]]:
    """What was asked for, all that means the same topic together."""
    groups: dict[str | bytes, list[DeleteTopicState]] = {}
    for state in asked:
        topic = _seen(resources, state)
        key = state.name if state.name is not None else state.topic_id if topic is None else topic.name
        groups.setdefault(key, []).append(state)
    return list(groups.values())


def _delete(resources: Resources, same: list[DeleteTopicState]) -> Result:
    check_deletion_enabled(resources)
    state = same[0]
    if (state.name is None) == (state.topic_id == _NO_ID):
        raise ApiError(ErrorCode.INVALID_REQUEST, "A topic is named by its name or by its id.")
    if len(same) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The topic is named more than once.")
    topic = resources.topic_to_delete(state.topic_id if state.name is None else state.name)

    def deleted(_: Topic) -> DeletableTopicResult:
        return DeletableTopicResult(topic.name, topic.topic_id)

    def failed(error: Exception) -> DeletableTopicResult:
        return DeletableTopicResult(topic.name, topic.topic_id, *describe(error))

    return mapped(delete_topic(resources, topic), deleted, otherwise=failed)


def _seen(resources: Resources, state: DeleteTopicState) -> Topic | None:
    """The topic that an id means, if the caller may know what it is called."""
    if state.topic_id == _NO_ID:
        return None
    return resources.find_topic(state.topic_id, AclOperation.DESCRIBE)


def _refused(resources: Resources, same: list[DeleteTopicState], error: ApiError) -> DeletableTopicResult:
    name = next((state.name for state in same if state.name is not None), None)
    if name is None and error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        topic = _seen(resources, same[0])
        name = None if topic is None else topic.name
    topic_id = next((state.topic_id for state in same if state.topic_id != _NO_ID), _NO_ID)
    return DeletableTopicResult(name, topic_id, error.code, error.message)
