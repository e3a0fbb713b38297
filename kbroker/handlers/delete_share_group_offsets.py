"""DeleteShareGroupOffsets 0: forget where a share group without members is in topics (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations import share_offsets
from kbroker.pending import wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.long_requests import Steps

_NO_TOPIC_ID = bytes(16)
_NOTHING = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")


def handle(
    broker: Broker, request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> Steps[DeleteShareGroupOffsetsResponse]:
    resources = broker.resources(context)
    broker.features.require("share.version", 1)
    resources.check_group(AclOperation.DELETE, request.group_id)
    found: dict[str, bytes | ApiError] = {}
    for asked in request.topics:
        try:
            found[asked.topic_name] = resources.topic(asked.topic_name, AclOperation.READ).topic_id
        except ApiError as error:
            found[asked.topic_name] = error
        yield None
    topic_ids = {each for each in found.values() if isinstance(each, bytes)}
    deleted = yield from wait(share_offsets.delete(resources, request.group_id, topic_ids))
    return DeleteShareGroupOffsetsResponse(
        responses=[
            _deleted(name, each if isinstance(each, ApiError) or each in deleted else _NOTHING)
            for name, each in found.items()
        ]
    )


def _deleted(name: str, result: bytes | ApiError) -> DeleteShareGroupOffsetsResponseTopic:
    if isinstance(result, bytes):
        return DeleteShareGroupOffsetsResponseTopic(name, result)
    code, message = describe(result)
    return DeleteShareGroupOffsetsResponseTopic(name, _NO_TOPIC_ID, code, message)


def refuse(
    request: DeleteShareGroupOffsetsRequest, context: RequestContext, error: BaseException
) -> DeleteShareGroupOffsetsResponse:
    code, message = describe(error)
    return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message)
