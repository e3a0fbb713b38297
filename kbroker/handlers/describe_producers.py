"""DescribeProducers 0: the idempotent and transactional producers a partition remembers (KIP-664)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, after, mapped
from kbroker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from kbroker.protocol.messages.describe_producers import ProducerState as DescribedProducer
from kbroker.requests.long_requests import Steps, each_of, lazily
from kbroker.security.acls import AclOperation
from kbroker.topics.names import check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Log, ProducerState


def handle(
    broker: Broker, request: DescribeProducersRequest, context: RequestContext
) -> Steps[DescribeProducersResponse]:
    found = yield from each_of(
        ((topic.name, topic.partition_indexes) for topic in request.topics),
        partial(_look_up, broker.resources(context)),
    )
    return DescribeProducersResponse(topics=lazily(found, lambda of: TopicResponse(*of)))


def _look_up(
    resources: Resources, topic: str, partition: int
) -> PartitionResponse | Pending[PartitionResponse]:
    failed = partial(_failed, partition)
    try:
        check_name(topic)
        log = resources.log(topic, partition, AclOperation.READ)
        refreshed = log.refresh()
        if refreshed is None:
            return _producers(log, partition)
    except Exception as error:
        return failed(error)
    return after(refreshed, lambda _: _producers(log, partition), otherwise=failed)


def _producers(log: Log, partition: int) -> PartitionResponse | Pending[PartitionResponse]:
    return mapped(log.producers(), partial(_described, partition), otherwise=partial(_failed, partition))


def _described(partition: int, states: list[ProducerState]) -> PartitionResponse:
    return PartitionResponse(
        partition,
        active_producers=lazily(
            states,
            lambda state: DescribedProducer(
                state.producer_id,
                state.producer_epoch,
                state.last_sequence,
                state.last_timestamp,
                state.coordinator_epoch,
                state.current_txn_start_offset,
            ),
        ),
    )


def _failed(partition: int, error: Exception) -> PartitionResponse:
    return PartitionResponse(partition, *describe(error))
