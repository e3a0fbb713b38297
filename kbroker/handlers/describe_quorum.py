"""DescribeQuorum 0–2: the state of the metadata quorum (KIP-595, KIP-836, KIP-853).

kbroker keeps its metadata in the catalog. It answers as a quorum of one does: it leads, is the only
voter and has caught up; the high watermark counts the catalog's commits. Only partition 0 of the
metadata topic can be asked for, and only alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

METADATA_TOPIC = "__cluster_metadata"


def handle(broker: Broker, request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    log_end_offset = broker.resources(context).catalog(AclOperation.DESCRIBE).commits
    if not _is_about_metadata(request.topics):
        return DescribeQuorumResponse(
            topics=lazily(
                request.topics,
                lambda topic: ResponseTopicData(topic.topic_name, lazily(topic.partitions, _unknown)),
            )
        )
    nodes = [
        Node(node.node_id, [Listener(context.listener, node.host, node.port)])
        for node in broker.cluster.nodes(context)
    ]
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(METADATA_TOPIC, [_state(broker, log_end_offset, context.now_ms)])],
        nodes=nodes if context.api_version >= 2 else [],
    )


def _state(broker: Broker, log_end_offset: int, now_ms: int) -> ResponsePartitionData:
    voter = ReplicaState(
        replica_id=broker.cluster.node_id,
        log_end_offset=log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        leader_id=broker.cluster.controller_id(),
        leader_epoch=broker.cluster.unclean_starts + 1,
        high_watermark=log_end_offset,
        current_voters=[voter],
    )


def _is_about_metadata(topics: list[RequestTopicData]) -> bool:
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return False
    return [each.partition_index for each in topics[0].partitions[:2]] == [0]


def _unknown(asked: RequestPartitionData) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=asked.partition_index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="This is not the metadata partition.",
    )


def refuse(
    request: DescribeQuorumRequest, context: RequestContext, error: BaseException
) -> DescribeQuorumResponse:
    code, message = describe(error)
    return DescribeQuorumResponse(error_code=code, error_message=message or "")
