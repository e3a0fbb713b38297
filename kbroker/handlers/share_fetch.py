"""ShareFetch 1–2 (KIP-932): acknowledge records of a share group, then acquire others, waiting for enough of
them (version 2: KIP-1206 acquire modes, KIP-1222 renewal of locks).

The session says which partitions are fetched from; the answer lists those of which there is something to
tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from kbroker.coordinators.shares.partition import AcknowledgeType, AcquireMode
from kbroker.errors import describe
from kbroker.operations.reading import most_record_bytes
from kbroker.operations.share_acknowledging import Acknowledging, Outcomes
from kbroker.operations.share_fetching import ShareLimits, fetch
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kbroker.requests.share_requests import MOST_REQUEST_BYTES, acknowledgements_of, are_many, sender
from kbroker.requests.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from kbroker.requests.traits import Traits

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.operations.share_fetching import ShareReads
    from kbroker.requests.context import RequestContext
    from kbroker.requests.share_sessions import Partition, ShareSession
    from kbroker.shares.registry import Shares

TRAITS = Traits(long_poll=True, bounded_answer=True, max_request_bytes=MOST_REQUEST_BYTES)

Response = ShareFetchResponse


def handle(
    broker: Broker, request: ShareFetchRequest, context: RequestContext
) -> Response | Pending[Response]:
    shares, group_id, member_id = sender(broker, request, context)
    if request.is_renew_ack and any(
        (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST, "What renews locks cannot fetch.")
    acknowledgements = acknowledgements_of(request.topics)
    acknowledges = any(acknowledgements.values())
    try:
        session = shares.sessions.begin_fetch(
            group_id,
            member_id,
            request.share_session_epoch,
            context.peer,
            listed=acknowledgements.keys(),
            forgotten=[
                (topic.topic_id, number)
                for topic in request.forgotten_topics_data
                for number in topic.partitions
            ],
            acknowledges=acknowledges,
        )
    except ApiError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _later(broker, error, request.max_wait_ms)
        raise
    outcomes: Outcomes | Pending[Outcomes] = {}
    if acknowledges:
        last_type = AcknowledgeType.RENEW if request.is_renew_ack else AcknowledgeType.REJECT
        acknowledging = Acknowledging(broker.resources(context), shares, group_id, member_id, last_type)
        if are_many(acknowledgements):
            outcomes = broker.long_requests.run(acknowledging.run_in_steps(acknowledgements))
        else:
            outcomes = acknowledging.run(acknowledgements)
    if request.share_session_epoch == FINAL_EPOCH:
        return mapped(outcomes, lambda outcomes: _closed(shares, session, outcomes))
    reads = _fetch(broker, shares, session, request, context)
    return join(
        [cast("Any", outcomes), reads],
        lambda parts: _response(shares, session, request.share_session_epoch, *parts),
    )


def refuse(request: ShareFetchRequest, context: RequestContext, error: Exception) -> Response:
    code, message = describe(error)
    return Response(error_code=code, error_message=message)


def _later(broker: Broker, error: ApiError, wait_ms: int) -> Response | Pending[Response]:
    """There are too many sessions: the client must not ask again at once."""
    response = Response(error_code=error.code, error_message=error.message)
    if wait_ms <= 0:
        return response

    def told() -> None:
        if not later.done:
            later.resolve(response)

    later: Pending[Response] = Pending(broker.scheduler.after(wait_ms, told))
    return later


def _fetch(
    broker: Broker, shares: Shares, session: ShareSession, request: ShareFetchRequest, context: RequestContext
) -> ShareReads | Pending[ShareReads]:
    if request.is_renew_ack or request.max_records <= 0 or request.max_bytes <= 0:
        return []
    max_bytes = min(request.max_bytes, broker.settings["fetch.max.bytes"])
    try:
        mode = AcquireMode(request.share_acquire_mode)
    except ValueError:
        # As Kafka, which acknowledges first.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "There is no such acquire mode.") from None
    throttle = context.throttle
    if throttle is not None:
        # What is more than the quota allows in its windows could never go out.
        max_bytes = min(max_bytes, most_record_bytes(throttle.most_fetch_bytes, len(session.partitions)))
    limits = ShareLimits(
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_wait_ms=request.max_wait_ms,
        max_records=request.max_records,
        batch_size=request.batch_size,
        mode=mode,
    )
    return fetch(
        broker.resources(context),
        shares,
        session,
        session.rotated(request.share_session_epoch),
        limits,
        None if throttle is None else throttle.fetched,
    )


def _closed(shares: Shares, session: ShareSession, outcomes: Outcomes) -> Response:
    shares.sessions.end(session)
    return _response(shares, session, FINAL_EPOCH, outcomes, [])


def _response(
    shares: Shares, session: ShareSession, epoch: int, outcomes: Outcomes, reads: ShareReads
) -> Response:
    partitions: dict[Partition, PartitionData] = {}
    for read in reads:
        asked = read.asked
        news = epoch == INITIAL_EPOCH or session.is_news(
            asked.key, has_records=bool(asked.acquired), failed=bool(read.error)
        )
        if news or asked.key in outcomes:
            partitions[asked.key] = PartitionData(
                partition_index=asked.partition,
                error_code=read.error,
                records=asked.records,
                acquired_records=[AcquiredRecords(*each) for each in asked.acquired],
            )
    for key, outcome in outcomes.items():
        data = partitions.setdefault(key, PartitionData(partition_index=key[1]))
        data.acknowledge_error_code, data.acknowledge_error_message = outcome
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), data in partitions.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id)
        topic.partitions.append(data)
    return Response(
        acquisition_lock_timeout_ms=shares.settings(session.group_id).record_lock_duration_ms,
        responses=list(topics.values()),
    )
