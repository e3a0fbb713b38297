"""FindCoordinator 0–6: the coordinator of a group (0), a transactional id (1), a share partition (2): here.

1 adds key types, 4 several keys (KIP-699), 6 share partitions, called group:topic id:partition (KIP-932).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbroker.cluster.interface import CoordinatorType
from kbroker.errors import describe
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation
from kbroker.topics.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_FIRST_BATCHED = 4
_NO_NODE = -1
_FIRST_WITH_SHARE = 6
_TOPICS = {CoordinatorType.GROUP: OFFSETS_TOPIC, CoordinatorType.TRANSACTION: TRANSACTIONS_TOPIC}
"""Which topic is there from the first time on that such a coordinator is looked for."""
_SHARE_KEY = re.compile(r".+:[A-Za-z0-9_-]{22}:\d+\Z")


def handle(
    broker: Broker, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if context.api_version >= _FIRST_BATCHED else [request.key]
    if request.key_type == CoordinatorType.SHARE:
        if context.api_version < _FIRST_WITH_SHARE:
            raise ApiError(ErrorCode.INVALID_REQUEST, "share partitions need version 6")
        if not all(map(_SHARE_KEY.match, keys)):
            raise ApiError(ErrorCode.INVALID_REQUEST, "a share partition is called group:topic id:partition")
    elif request.key_type not in (CoordinatorType.GROUP, CoordinatorType.TRANSACTION):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no key type {request.key_type}")
    kind = CoordinatorType(request.key_type)
    resources = broker.resources(context)
    topic = _TOPICS.get(kind)
    if context.api_version < _FIRST_BATCHED:
        _check(resources, kind, request.key)
        if topic is not None:
            broker.make_internal_topic(topic)
        node = broker.cluster.coordinator(kind, request.key, context)
        return FindCoordinatorResponse(
            error_message="NONE", node_id=node.node_id, host=node.host, port=node.port
        )

    def coordinator(key: str) -> Coordinator:
        try:
            _check(resources, kind, key)
        except ApiError as error:
            return Coordinator(key, _NO_NODE, "", _NO_NODE, error.code, "")
        if topic is not None:
            broker.make_internal_topic(topic)
        node = broker.cluster.coordinator(kind, key, context)
        return Coordinator(key, node.node_id, node.host, node.port)

    return FindCoordinatorResponse(coordinators=lazily(keys, coordinator))


def _check(resources: Resources, kind: CoordinatorType, key: str) -> None:
    if kind is CoordinatorType.GROUP:
        resources.check_group(AclOperation.DESCRIBE, key)
    elif kind is CoordinatorType.TRANSACTION:
        resources.check_transactional_id(AclOperation.DESCRIBE, key)
    else:
        resources.check_cluster(AclOperation.CLUSTER_ACTION)


def refuse(
    request: FindCoordinatorRequest, context: RequestContext, error: BaseException
) -> FindCoordinatorResponse:
    code, message = describe(error)
    if context.api_version < _FIRST_BATCHED:
        return FindCoordinatorResponse(
            error_code=code, error_message=message, node_id=_NO_NODE, port=_NO_NODE
        )
    return FindCoordinatorResponse(
        coordinators=lazily(
            request.coordinator_keys, lambda key: Coordinator(key, _NO_NODE, "", _NO_NODE, code, message)
        )
    )
