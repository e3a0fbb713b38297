"""AddPartitionsToTxn 0–5: make partitions part of a transaction (KIP-98).

0–3 come from clients, for one transaction. 4 and 5 come from brokers, for several, and may only ask whether
the partitions are in it (KIP-890); they add on behalf of clients with transaction version 2. All partitions
of a transaction are added or none: if one does not exist, the others get OPERATION_NOT_ATTEMPTED. Before 2
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.errors import TransactionError
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TopicPartition
from kbroker.errors import describe
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kbroker.requests.long_requests import Steps, lazily
from kbroker.security.acls import AclOperation
from kbroker.topics.names import INTERNAL_TOPICS
from kbroker.transactions.errors import fenced_code

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_FIRST_WITH_PRODUCER_FENCED = 2
_FIRST_BATCHED = 4
_CODE = Callable[[TopicPartition], int]

Result = AddPartitionsToTxnResult | Pending[AddPartitionsToTxnResult]


def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, context: RequestContext
) -> Steps[AddPartitionsToTxnResponse | Pending[AddPartitionsToTxnResponse]]:
    version = context.api_version
    resources = broker.resources(context)
    if version >= _FIRST_BATCHED:
        resources = resources.as_broker()
        results: list[Result] = []
        for transaction in request.transactions:
            results += [(yield from _add(resources, transaction, context))]
            yield None
        return join(results, lambda results: AddPartitionsToTxnResponse(results_by_transaction=results))
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return join(
        [(yield from _add(resources, only, context))],
        lambda results: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results),
    )


def refuse(
    request: AddPartitionsToTxnRequest, context: RequestContext, error: BaseException
) -> AddPartitionsToTxnResponse:
    code, _ = describe(error)
    if context.api_version >= _FIRST_BATCHED:
        return AddPartitionsToTxnResponse(error_code=code)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_topic_results(request.v3_and_below_topics, lambda _: code)
    )


def _add(
    resources: Resources, transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> Steps[Result]:
    version = context.api_version
    transactions = resources.transactions(transaction.transactional_id, AclOperation.WRITE)
    partitions: list[TopicPartition] = []
    refused: dict[TopicPartition, ErrorCode] = {}
    for partition in _partitions(transaction.topics):
        partitions.append(partition)
        if partition.topic in INTERNAL_TOPICS or not resources.may_topic(AclOperation.WRITE, partition.topic):
            refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not resources.has_partition(*partition):
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield None
    if refused:
        return _result(
            transaction, lambda partition: refused.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
        )
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        return _verify(transactions, transaction, producer, partitions)

    def added(_: None) -> AddPartitionsToTxnResult:
        return _result(transaction, lambda _: ErrorCode.NONE)

    def failed(error: Exception) -> AddPartitionsToTxnResult:
        code = fenced_code(describe(error)[0], version >= _FIRST_WITH_PRODUCER_FENCED)
        return _result(transaction, lambda _: code)

    adding = transactions.add_partitions(
        transaction.transactional_id,
        producer,
        partitions,
        2 if version >= _FIRST_BATCHED else 0,
        context.now_ms,
    )
    return mapped(adding, added, otherwise=failed)


def _verify(
    transactions: TransactionCoordinator,
    transaction: AddPartitionsToTxnTransaction,
    producer: ProducerIdAndEpoch,
    partitions: list[TopicPartition],
) -> AddPartitionsToTxnResult:
    try:
        errors = transactions.verify_partitions(transaction.transactional_id, producer, partitions)
    except TransactionError as error:
        refused = describe(error)[0]
        return _result(transaction, lambda _: refused)

    def code(partition: TopicPartition) -> int:
        error = errors[partition]
        return ErrorCode.NONE if error is None else describe(error)[0]

    return _result(transaction, code)


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> Iterable[TopicPartition]:
    return (TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)


def _result(transaction: AddPartitionsToTxnTransaction, code: _CODE) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(transaction.transactional_id, _topic_results(transaction.topics, code))


def _topic_results(
    topics: Sequence[AddPartitionsToTxnTopic], code: _CODE
) -> list[AddPartitionsToTxnTopicResult]:
    def result(topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
        return AddPartitionsToTxnTopicResult(
            topic.name,
            lazily(
                topic.partitions,
                lambda index: AddPartitionsToTxnPartitionResult(
                    index, code(TopicPartition(topic.name, index))
                ),
            ),
        )

    return lazily(topics, result)
