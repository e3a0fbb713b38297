"""EndTxn 0–5: commit or abort a transaction (KIP-98).

5 is transaction version 2 (KIP-890): the end raises the producer's epoch, and the answer holds the producer
id and epoch to go on with. Before 2 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch
from kbroker.errors import describe
from kbroker.pending import mapped
from kbroker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kbroker.security.acls import AclOperation
from kbroker.transactions.errors import fenced_code

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext

_FIRST_WITH_PRODUCER_FENCED = 2
_FIRST_WITH_EPOCH_BUMP = 5


def handle(
    broker: Broker, request: EndTxnRequest, context: RequestContext
) -> EndTxnResponse | Pending[EndTxnResponse]:
    def answer(producer: ProducerIdAndEpoch) -> EndTxnResponse:
        return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)

    transactions = broker.resources(context).transactions(request.transactional_id, AclOperation.WRITE)
    ended = transactions.end_transaction(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        commit=request.committed,
        version=2 if context.api_version >= _FIRST_WITH_EPOCH_BUMP else 0,
        now_ms=context.now_ms,
    )
    return mapped(ended, answer)


def refuse(request: EndTxnRequest, context: RequestContext, error: BaseException) -> EndTxnResponse:
    code, _ = describe(error)
    knows_producer_fenced = context.api_version >= _FIRST_WITH_PRODUCER_FENCED
    return EndTxnResponse(error_code=fenced_code(code, knows_producer_fenced))
