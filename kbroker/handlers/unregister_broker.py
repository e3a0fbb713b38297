"""UnregisterBroker 0: forget a broker that is gone for good (KIP-500).

No other broker was ever registered. This one answers without error, as in Kafka, and stays: it is running,
and would register again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: UnregisterBrokerRequest, context: RequestContext
) -> UnregisterBrokerResponse:
    broker.resources(context).check_cluster(AclOperation.ALTER)
    if broker.cluster.has_node(request.broker_id):
        return UnregisterBrokerResponse(error_message="")
    return UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_message=f"There is no broker {request.broker_id}, only broker {broker.cluster.node_id}.",
    )
