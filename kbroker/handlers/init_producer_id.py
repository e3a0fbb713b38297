"""InitProducerId 0–5: an id and epoch for an idempotent producer (KIP-98, KIP-360).

Without a transactional id every request gets a new producer id, whatever it had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.joining import mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kbroker.storage.pending import Pending

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext


def handle(
    broker: Broker, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    if request.transactional_id is not None:
        return InitProducerIdResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, producer_id=-1, producer_epoch=-1
        )
    return mapped(
        broker.producer_ids.allocate(),
        lambda producer_id: InitProducerIdResponse(producer_id=producer_id, producer_epoch=0),
    )
