"""FindCoordinator 0–6: where the coordinator of a group (0), a transactional id (1) or a share group (2) is:
here.

1 adds key types, 4 several keys (KIP-699), 6 share groups (KIP-932).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import ApiError, describe
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext

_FIRST_BATCHED = 4
_NO_NODE = -1
_KEY_TYPES = range(3)


def handle(
    broker: Broker, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    if request.key_type not in _KEY_TYPES:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    host, port = broker.advertised(context)
    if context.api_version < _FIRST_BATCHED:
        return FindCoordinatorResponse(node_id=broker.node_id, host=host, port=port)
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key, broker.node_id, host, port) for key in request.coordinator_keys]
    )


def refuse(
    request: FindCoordinatorRequest, context: RequestContext, error: BaseException
) -> FindCoordinatorResponse:
    code, message = describe(error)
    if context.api_version < _FIRST_BATCHED:
        return FindCoordinatorResponse(
            error_code=code, error_message=message, node_id=_NO_NODE, port=_NO_NODE
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key, _NO_NODE, "", _NO_NODE, code, message) for key in request.coordinator_keys
        ]
    )
