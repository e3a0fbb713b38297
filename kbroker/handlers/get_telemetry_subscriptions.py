"""GetTelemetrySubscriptions 0: which metrics this client is to push, and how often (KIP-714).

Not offered where kbroker.telemetry.enable is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kbroker.requests.apis import CLIENT_TELEMETRY
from kbroker.telemetry.clients import ACCEPTED_COMPRESSION_TYPES, ClientTelemetry

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    telemetry = receiver_of(broker)
    instance = telemetry.ask(request.client_instance_id, attributes_of(context), context.peer, context.now_ms)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.client_instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED_COMPRESSION_TYPES),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=False,
        requested_metrics=instance.metrics,
    )


def receiver_of(broker: Broker) -> ClientTelemetry:
    if not broker.has_feature(CLIENT_TELEMETRY):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    return broker.telemetry


def attributes_of(context: RequestContext) -> Mapping[str, str]:
    """What subscriptions match clients by."""
    peer = context.peer
    attributes = {"client_source_address": peer.peer_host, "client_source_port": str(peer.peer_port)}
    if context.client_id is not None:
        attributes["client_id"] = context.client_id
    software = peer.client_software or ("unknown", "unknown")  # Kafka's words for it
    attributes["client_software_name"], attributes["client_software_version"] = software
    return attributes
