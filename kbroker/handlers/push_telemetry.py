"""PushTelemetry 0: the metrics of a client, as OpenTelemetry has them (KIP-714).

Not offered where kbroker.telemetry.enable is off. A large push is read in turns with other requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.handlers.get_telemetry_subscriptions import attributes_of, receiver_of
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.long_requests import Steps


def handle(
    broker: Broker, request: PushTelemetryRequest, context: RequestContext
) -> Steps[PushTelemetryResponse]:
    yield from receiver_of(broker).push(
        request.client_instance_id,
        attributes_of(context),
        context.peer,
        context.now_ms,
        subscription_id=request.subscription_id,
        terminating=request.terminating,
        compression_type=request.compression_type,
        metrics=request.metrics,
    )
    return PushTelemetryResponse()
