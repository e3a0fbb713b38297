"""A client that is asked for its metrics, and the operator who subscribes to them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.push_telemetry import PushTelemetryRequest
from tests.handlers.conftest import Cluster
from tests.observability.client_metrics.pushed import gauge, metrics_data

CLIENT_METRICS = 16
METRICS = metrics_data(gauge("number", 0))


class TelemetryClient:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def offered_apis(self) -> set[int]:
        """Asked by a Java client, so that the broker knows which software it is."""
        request = ApiVersionsRequest(
            client_software_name="apache-kafka-java", client_software_version="4.3.1"
        )
        return {api.api_key for api in self._cluster.send(request, 4).api_keys}

    def subscribe(self, client_instance_id: bytes = bytes(16)) -> Any:
        return self._cluster.send(GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id), 0)

    def push(self, subscription: Any, metrics: bytes = METRICS, **fields: Any) -> int:
        """The error code."""
        request = PushTelemetryRequest(
            **{
                "client_instance_id": subscription.client_instance_id,
                "subscription_id": subscription.subscription_id,
                **fields,
            },
            metrics=metrics,
        )
        code: int = self._cluster.send(request, 0).error_code
        return code


def alter_subscription(cluster: Cluster, name: str, configs: dict[str, str | None]) -> None:
    """Set what has a value, delete what has none."""
    changes = [AlterableConfig(config, 0 if value else 1, value) for config, value in configs.items()]
    resource = AlterConfigsResource(CLIENT_METRICS, name, changes)
    (answer,) = cluster.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == ErrorCode.NONE


def stored(directory: Path, subscription: Any) -> bytes:
    """What the broker keeps of a client's last push."""
    name = base64.urlsafe_b64encode(subscription.client_instance_id).decode().rstrip("=")
    return (directory / f"{name}.otlp").read_bytes()
