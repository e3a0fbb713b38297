"""AddOffsetsToTxn 0–4: make a group's offsets part of a transaction (KIP-98).

Among the transaction's partitions they stand as the partition of __consumer_offsets that Kafka keeps them in.
Before 2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TopicPartition
from kbroker.errors import describe
from kbroker.pending import mapped
from kbroker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kbroker.security.acls import AclOperation
from kbroker.topics.names import OFFSETS_TOPIC
from kbroker.transactions.errors import fenced_code
from kbroker.transactions.offsets_partition import partition_of_group

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext

_FIRST_WITH_PRODUCER_FENCED = 2


def handle(
    broker: Broker, request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Pending[AddOffsetsToTxnResponse]:
    def answer(_: None) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse()

    resources = broker.resources(context)
    transactions = resources.transactions(request.transactional_id, AclOperation.WRITE)
    resources.check_group(AclOperation.READ, request.group_id)
    partition = partition_of_group(broker, request.group_id)
    added = transactions.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [TopicPartition(OFFSETS_TOPIC, partition)],
        0,
        context.now_ms,
    )
    return mapped(added, answer)


def refuse(
    request: AddOffsetsToTxnRequest, context: RequestContext, error: BaseException
) -> AddOffsetsToTxnResponse:
    code, _ = describe(error)
    knows_producer_fenced = context.api_version >= _FIRST_WITH_PRODUCER_FENCED
    return AddOffsetsToTxnResponse(error_code=fenced_code(code, knows_producer_fenced))
