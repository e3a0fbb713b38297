"""Configs of resources: altered and described."""

from __future__ import annotations

from typing import Any

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.handlers.conftest import Cluster

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(cluster: Cluster, *resources: tuple[int, str, list[Any]], version: int = 1, **options: Any) -> Any:
    """IncrementalAlterConfigs: resources are (type, name, [(config, operation, value)])."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(type_, name, [AlterableConfig(*change) for change in changes])
            for type_, name, changes in resources
        ],
        **options,
    )
    return cluster.send(request, version)


def describe(cluster: Cluster, *resources: tuple[Any, ...], version: int = 4, **options: Any) -> list[Any]:
    """DescribeConfigs: resources are (type, name, names of configs)."""
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(*resource) for resource in resources], **options
    )
    results: list[Any] = cluster.send(request, version).results
    return results


def codes(response: Any) -> list[str]:
    return [ErrorCode(answer.error_code).name for answer in response.responses]
