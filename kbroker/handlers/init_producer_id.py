"""InitProducerId 0–5: an id and epoch for an idempotent or transactional producer (KIP-98).

Without a transactional id every request gets a new producer id, whatever it had before. With one the producer
before it is fenced; 3 adds the id and epoch that a producer has, to go on after an error (KIP-360). Before 4
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch
from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kbroker.security.acls import AclOperation
from kbroker.transactions.errors import fenced_code

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_FIRST_WITH_PRODUCER_FENCED = 4


def handle(
    broker: Broker, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    resources = broker.resources(context)
    if request.transactional_id is None:
        producer_ids = resources.producer_ids()
        _expected(request)
        return mapped(
            producer_ids.allocate(),
            lambda producer_id: InitProducerIdResponse(producer_id=producer_id, producer_epoch=0),
        )

    def answer(producer: ProducerIdAndEpoch) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
        )

    transactions = resources.transactions(request.transactional_id, AclOperation.WRITE)
    initialized = transactions.init_producer_id(
        request.transactional_id, request.transaction_timeout_ms, _expected(request), context.now_ms
    )
    return mapped(initialized, answer)


def refuse(
    request: InitProducerIdRequest, context: RequestContext, error: BaseException
) -> InitProducerIdResponse:
    code, _ = describe(error)
    return InitProducerIdResponse(
        error_code=fenced_code(code, context.api_version >= _FIRST_WITH_PRODUCER_FENCED),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_EPOCH,
    )


def _expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_EPOCH
    if has_id != has_epoch:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together")
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None
