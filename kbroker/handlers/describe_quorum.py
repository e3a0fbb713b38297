"""DescribeQuorum 0–2: the state of the metadata quorum (KIP-595, KIP-836, KIP-853).

kbroker keeps its metadata in the catalog. It answers as a quorum of one does: it leads, is the only
voter and has caught up; the high watermark counts the catalog's commits. Only partition 0 of the
metadata topic can be asked for, and only alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext

METADATA_TOPIC = "__cluster_metadata"


def handle(broker: Broker, request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    asked = [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics
    ]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            topics=[
                ResponseTopicData(name, [_unknown(partition) for partition in partitions])
                for name, partitions in asked
            ]
        )
    host, port = broker.advertised(context)
    nodes = [Node(broker.node_id, [Listener(context.listener, host, port)])]
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(METADATA_TOPIC, [_state(broker, context.now_ms)])],
        nodes=nodes if context.api_version >= 2 else [],
    )


def _state(broker: Broker, now_ms: int) -> ResponsePartitionData:
    log_end_offset = broker.database.commits
    voter = ReplicaState(
        replica_id=broker.node_id,
        log_end_offset=log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        leader_id=broker.node_id,
        leader_epoch=broker.unclean_starts + 1,
        high_watermark=log_end_offset,
        current_voters=[voter],
    )


def _unknown(partition: int) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=partition,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="This is not the metadata partition.",
    )
