"""Fetch 0–18: read batches, waiting for enough of them (KIP-74 limits, KIP-98 isolation, KIP-227 sessions,
KIP-320 leader epochs, KIP-516 topic ids, KIP-595 divergence, KIP-951 leader endpoints).

Versions 0–3 get their records in message formats 0 and 1: such clients know no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import error_code
from kbroker.operations.reading import Fetching, PartitionRead, answer_bytes, most_record_bytes
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kbroker.requests.traits import Traits
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.fetch_sessions import Fetch, FetchedPartition
    from kbroker.storage.interface import Slice

_READ_COMMITTED = 1
_FIRST_WITH_BATCHES = 4  # of format 2
_NOT_LOOKED_INTO = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
_LEADER_SINCE = 16  # the first version that tells a client whose leader epoch is old who leads (KIP-951)

TRAITS = Traits(long_poll=True, bounded_answer=True)


def handle(
    broker: Broker, request: FetchRequest, context: RequestContext
) -> FetchResponse | Pending[FetchResponse]:
    version = context.api_version
    try:
        fetch = broker.fetch_sessions.begin(request, version, context.now_ms)
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    if _replica_id(request, version) >= 0:  # there are no other brokers
        refused = not broker.resources(context).may_cluster(AclOperation.CLUSTER_ACTION)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if refused else ErrorCode.NOT_LEADER_OR_FOLLOWER
        reads = [_not_a_replica(each, code) for each in fetch.partitions]
        return _response(broker, fetch, reads, context, committed=False)
    committed = request.isolation_level == _READ_COMMITTED
    max_bytes = min(request.max_bytes, broker.settings["fetch.max.bytes"])
    if context.throttle is not None:
        # What is more than the quota allows in its windows could never go out.
        most = most_record_bytes(context.throttle.most_fetch_bytes, len(fetch.partitions))
        max_bytes = min(max_bytes, most)
    fetching = Fetching(
        broker.resources(context),
        fetch.partitions,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_wait_ms=request.max_wait_ms,
        committed=committed,
        hard_limit=version < 3,
        sendable=version >= _FIRST_WITH_BATCHES and context.peer.takes_files,
    )
    return mapped(fetching.start(), lambda reads: _answer(broker, fetch, reads, context, committed))


def _answer(
    broker: Broker,
    fetch: Fetch,
    reads: list[PartitionRead[FetchedPartition]],
    context: RequestContext,
    committed: bool,
) -> FetchResponse:
    """What was read; nothing, if that is more than a quota allows: the client asks again after its wait."""
    if context.throttle is not None and not context.throttle.fetched(answer_bytes(reads)):
        broker.fetch_sessions.throttled(fetch)
        return FetchResponse(session_id=fetch.session_id if fetch.incremental else 0)
    return _response(broker, fetch, reads, context, committed)


def _replica_id(request: FetchRequest, version: int) -> int:
    return request.replica_id if version < 15 else request.replica_state.replica_id


def _not_a_replica(asked: FetchedPartition, error: ErrorCode) -> PartitionRead[FetchedPartition]:
    read = PartitionRead(asked)
    read.error = error
    return read


def refuse(request: FetchRequest, context: RequestContext, error: BaseException) -> FetchResponse:
    code = error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    if context.api_version >= 7:
        return FetchResponse(error_code=code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [_failed(partition.partition, code) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _response(
    broker: Broker,
    fetch: Fetch,
    reads: list[PartitionRead[FetchedPartition]],
    context: RequestContext,
    committed: bool,
) -> FetchResponse:
    response = FetchResponse(session_id=fetch.session_id)
    topic_response: FetchableTopicResponse | None = None
    last_topic: str | bytes | None = None
    for read in reads:
        data = _partition(broker, read, context, committed)
        asked, session = read.asked, fetch.session
        size_bytes = 0 if read.slice is None else read.slice.size_bytes
        if size_bytes and read.log is not None:
            read.log.counts.fetches += 1
            read.log.counts.fetched_bytes += size_bytes
        if session is not None:
            news = asked.is_news(size_bytes, data.high_watermark, data.log_start_offset, data.error_code)
            if size_bytes:
                session.rotate(asked)
            if fetch.incremental and not news and read.diverging is None:
                continue
        if topic_response is None or asked.topic != last_topic:
            last_topic = asked.topic
            topic_response = FetchableTopicResponse()
            if isinstance(asked.topic, bytes):
                topic_response.topic_id = asked.topic
            else:
                topic_response.topic = asked.topic
            response.responses.append(topic_response)
        topic_response.partitions.append(data)
        if data.current_leader.leader_id >= 0 and not response.node_endpoints:
            response.node_endpoints = [
                NodeEndpoint(node.node_id, node.host, node.port)
                for node in broker.cluster.nodes(context)
                if node.node_id == data.current_leader.leader_id
            ]
    return response


def _partition(
    broker: Broker, read: PartitionRead[FetchedPartition], context: RequestContext, committed: bool
) -> PartitionData:
    got = read.slice
    if got is None:
        data = _failed(read.asked.partition, read.error)
        if read.error in _NOT_LOOKED_INTO:
            data.aborted_transactions = []
        if read.diverging is not None and read.diverged_log is not None:
            data.diverging_epoch = EpochEndOffset(read.diverging.leader_epoch, read.diverging.end_offset)
            data.high_watermark = read.diverged_log.high_watermark
            data.last_stable_offset = read.diverged_log.last_stable_offset
            data.log_start_offset = read.diverged_log.log_start_offset
        fenced = read.error == ErrorCode.FENCED_LEADER_EPOCH
        if fenced and read.topic is not None and context.api_version >= _LEADER_SINCE:
            leader = broker.cluster.leader(read.topic, read.asked.partition, context)
            data.current_leader = LeaderIdAndEpoch(leader, broker.cluster.leader_epoch(read.topic))
        return data
    data = PartitionData(
        partition_index=read.asked.partition,
        high_watermark=got.high_watermark,
        last_stable_offset=got.last_stable_offset,
        log_start_offset=got.log_start_offset,
        aborted_transactions=None,
        records=got.buffers,
    )
    if committed:
        data.aborted_transactions = [AbortedTransaction(*aborted) for aborted in got.aborted]
    if context.api_version < _FIRST_WITH_BATCHES:
        _down_convert(data, got, read.asked.fetch_offset, context.api_version)
    return data


def _failed(partition: int, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _down_convert(data: PartitionData, got: Slice, fetch_offset: int, version: int) -> None:
    from kbroker.protocol.records import legacy as legacy_records
    from kbroker.protocol.records.errors import UnsupportedCompression

    magic = 0 if version < 2 else 1
    try:
        data.records = legacy_records.down_convert(memoryview(got.data), magic, fetch_offset)
    except UnsupportedCompression:
        data.records = b""
        data.error_code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
