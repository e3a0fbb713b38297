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
from kbroker.pending import Pending, mapped
from kbroker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kbroker.requests.long_requests import Steps, each_of, lazily
from kbroker.security.acls import AclOperation
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Log


def handle(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Steps[OffsetForLeaderEpochResponse]:
    resources = broker.resources(context)
    if resources.may_cluster(AclOperation.CLUSTER_ACTION):
        resources = resources.as_broker()
    found = yield from each_of(
        ((topic.topic, topic.partitions) for topic in request.topics), partial(_look_up, resources)
    )
    return OffsetForLeaderEpochResponse(topics=lazily(found, lambda of: OffsetForLeaderTopicResult(*of)))


def _look_up(
    resources: Resources, topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset | Pending[EpochEndOffset]:
    try:
        log = resources.log(topic, asked.partition, AclOperation.DESCRIBE)
        leader_epochs.check(asked.current_leader_epoch, log.leader_epoch)
        return mapped(log.refresh(), lambda _: _end_offset(log, asked), otherwise=partial(_failed, asked))
    except Exception as error:
        return _failed(asked, error)


def _end_offset(log: Log, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    end = leader_epochs.end_offset(log, asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=end.leader_epoch, end_offset=end.end_offset)


def _failed(asked: OffsetForLeaderPartition, error: Exception) -> EpochEndOffset:
    return EpochEndOffset(partition=asked.partition, error_code=describe(error)[0])
