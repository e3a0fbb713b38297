"""AlterShareGroupOffsets 0: let a share group without members go on elsewhere (KIP-932).

A group that is not there is made, if one of the topics is. Offsets are not compared with those of the log: a
group may be set to where nothing is yet. A partition that is named twice gets the last offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations import share_offsets
from kbroker.pending import wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.long_requests import Steps

_NO_TOPIC_ID = bytes(16)
_NO_PARTITION = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic has no such partition.")


def handle(
    broker: Broker, request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> Steps[AlterShareGroupOffsetsResponse]:
    resources = broker.resources(context)
    broker.features.require("share.version", 1)
    resources.check_group(AclOperation.READ, request.group_id)
    offsets: dict[share_offsets.Partition, int] = {}
    topics: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
    any_topic = False
    for asked in request.topics:
        yield None
        name = asked.topic_name
        refused: ApiError | None = None
        try:
            topic = resources.topic(name, AclOperation.READ)
        except ApiError as error:
            refused = error
        else:
            any_topic = True
        topic_id = _NO_TOPIC_ID if refused is not None else topic.topic_id
        answers = topics.setdefault(name, AlterShareGroupOffsetsResponseTopic(name, topic_id)).partitions
        for partition in asked.partitions:
            error_of_partition = refused
            if refused is None:
                if resources.has_partition(name, partition.partition_index):
                    offsets[topic_id, partition.partition_index] = partition.start_offset
                else:
                    error_of_partition = _NO_PARTITION
            answer = AlterShareGroupOffsetsResponsePartition(partition.partition_index)
            if error_of_partition is not None:
                answer.error_code, answer.error_message = describe(error_of_partition)
            answers.append(answer)
            yield None
    yield from wait(
        share_offsets.alter(resources, request.group_id, offsets, create=any_topic, now_ms=context.now_ms)
    )
    return AlterShareGroupOffsetsResponse(responses=list(topics.values()))


def refuse(
    request: AlterShareGroupOffsetsRequest, context: RequestContext, error: BaseException
) -> AlterShareGroupOffsetsResponse:
    code, message = describe(error)
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=message)
