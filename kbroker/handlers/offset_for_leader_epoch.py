"""OffsetForLeaderEpoch 0–4: where a leader epoch ended (KIP-101, KIP-320).

A reader finds out with it what was cut off. The answer is the largest epoch at or below the asked one,
with its end offset; (-1, -1) if there is none or the asked one is still to come. Version 2 adds the
client's current leader epoch, which is checked. Kafka 4 no longer has versions 0 (without the epoch in
the answer) and 1.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kbroker.requests.long_requests import lazily
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=lazily(
            request.topics,
            lambda topic: OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=lazily(topic.partitions, partial(_end_offset, broker, topic.topic)),
            ),
        )
    )


def _end_offset(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        log = broker.find_log(topic, asked.partition)
        leader_epochs.check(asked.current_leader_epoch, log.leader_epoch)
        end = leader_epochs.end_offset(log, asked.leader_epoch)
    except Exception as error:
        return EpochEndOffset(partition=asked.partition, error_code=describe(error)[0])
    return EpochEndOffset(partition=asked.partition, leader_epoch=end.leader_epoch, end_offset=end.end_offset)
