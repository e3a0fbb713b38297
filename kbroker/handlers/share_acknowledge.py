"""ShareAcknowledge 1–2 (KIP-932): acknowledge records of a share group without fetching others (version 2:
KIP-1222 renewal of locks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.shares.partition import AcknowledgeType
from kbroker.errors import describe
from kbroker.operations.share_acknowledging import Acknowledging
from kbroker.pending import mapped
from kbroker.protocol.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kbroker.requests.share_requests import MOST_REQUEST_BYTES, acknowledgements_of, are_many, sender
from kbroker.requests.share_sessions import FINAL_EPOCH
from kbroker.requests.traits import Traits

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.operations.share_acknowledging import Outcomes
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext
    from kbroker.requests.share_sessions import ShareSession
    from kbroker.shares.registry import Shares

TRAITS = Traits(max_request_bytes=MOST_REQUEST_BYTES)

Response = ShareAcknowledgeResponse


def handle(
    broker: Broker, request: ShareAcknowledgeRequest, context: RequestContext
) -> Response | Pending[Response]:
    shares, group_id, member_id = sender(broker, request, context)
    session = shares.sessions.begin_acknowledge(group_id, member_id, request.share_session_epoch)
    last_type = AcknowledgeType.RENEW if request.is_renew_ack else AcknowledgeType.REJECT
    acknowledging = Acknowledging(broker.resources(context), shares, group_id, member_id, last_type)
    acknowledgements = acknowledgements_of(request.topics)
    outcomes: Outcomes | Pending[Outcomes]
    if are_many(acknowledgements):
        outcomes = broker.long_requests.run(acknowledging.run_in_steps(acknowledgements))
    else:
        outcomes = acknowledging.run(acknowledgements)
    final = request.share_session_epoch == FINAL_EPOCH
    return mapped(outcomes, lambda outcomes: _response(shares, session, outcomes, final=final))


def refuse(request: ShareAcknowledgeRequest, context: RequestContext, error: Exception) -> Response:
    code, message = describe(error)
    return Response(error_code=code, error_message=message)


def _response(shares: Shares, session: ShareSession, outcomes: Outcomes, *, final: bool) -> Response:
    if final:
        shares.sessions.end(session)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, number), (code, message) in outcomes.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id)
        topic.partitions.append(PartitionData(number, code, message))
    return Response(
        acquisition_lock_timeout_ms=shares.settings(session.group_id).record_lock_duration_ms,
        responses=list(topics.values()),
    )
