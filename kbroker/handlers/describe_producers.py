"""DescribeProducers 0: the idempotent and transactional producers a partition remembers (KIP-664)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kbroker.requests.long_requests import lazily
from kbroker.topics.names import check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=lazily(
            request.topics,
            lambda topic: TopicResponse(
                topic.name,
                lazily(topic.partition_indexes, partial(_producers, broker, topic.name)),
            ),
        )
    )


def _producers(broker: Broker, topic: str, partition: int) -> PartitionResponse:
    try:
        check_name(topic)
        if broker.topics.get(topic) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic}.")
        states = broker.find_log(topic, partition).producers()
    except Exception as error:
        return PartitionResponse(partition, *describe(error))
    return PartitionResponse(
        partition,
        active_producers=lazily(
            states,
            lambda state: ProducerState(
                state.producer_id,
                state.producer_epoch,
                state.last_sequence,
                state.last_timestamp,
                state.coordinator_epoch,
                state.current_txn_start_offset,
            ),
        ),
    )
