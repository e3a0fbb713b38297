"""DescribeTransactions 0: the state of transactional ids (KIP-664)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.errors import TransactionError
from kbroker.errors import describe
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources


def handle(
    broker: Broker, request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=lazily(
            list(dict.fromkeys(request.transactional_ids)), partial(_describe, broker.resources(context))
        )
    )


def _describe(resources: Resources, transactional_id: str) -> TransactionState:
    try:
        transactions = resources.transactions(transactional_id, AclOperation.DESCRIBE)
        transaction = transactions.describe(transactional_id)
    except (ApiError, TransactionError) as error:
        return TransactionState(describe(error)[0], transactional_id)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        if resources.may_topic(AclOperation.DESCRIBE, topic):
            topics[topic].append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic, partitions) for topic, partitions in topics.items()],
    )
