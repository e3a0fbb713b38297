"""PushTelemetry 0: the metrics of a client, as OpenTelemetry has them (KIP-714).

Offered only when client metrics have a receiver (kbroker.telemetry.directory).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.handlers.get_telemetry_subscriptions import attributes_of, receiver_of
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(broker: Broker, request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    receiver_of(broker).push(
        request.client_instance_id,
        attributes_of(context),
        context.now_ms,
        subscription_id=request.subscription_id,
        terminating=request.terminating,
        compression_type=request.compression_type,
        metrics=request.metrics,
    )
    return PushTelemetryResponse()
