"""ListConfigResources 0–1: the resources that have configs (KIP-1142).

Every topic is one, and this broker as itself and as the owner of loggers; groups and client metrics
subscriptions are while something is configured for them. Version 0, once ListClientMetricsResources, lists
the last kind alone. No types means all of them; an unknown one is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.resources import ResourceType
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources


def handle(
    broker: Broker, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    resources = broker.resources(context)
    resources.check_cluster(AclOperation.DESCRIBE_CONFIGS)
    if context.api_version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    else:
        wanted = set(request.resource_types) or {int(type_) for type_ in ResourceType}
    if not wanted <= set(ResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, type_)
            for type_ in sorted(wanted, reverse=True)
            for name in _names(resources, ResourceType(type_))
        ]
    )


def _names(resources: Resources, type_: ResourceType) -> list[str]:
    if type_ in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(resources.broker.cluster.node_id)]
    return resources.config_names(type_)
