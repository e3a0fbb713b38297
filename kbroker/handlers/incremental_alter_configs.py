"""IncrementalAlterConfigs 0–1: single changes to the configs of resources (KIP-339): SET, DELETE, and for
lists APPEND and SUBTRACT. Levels of loggers change here too (KIP-412).

Each resource is taken or refused as a whole, and may appear once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.alteration import alter_each
from kbroker.config.resources import Change
from kbroker.operations.configs import alter_configs
from kbroker.pending import Pending, join
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> Steps[IncrementalAlterConfigsResponse | Pending[IncrementalAlterConfigsResponse]]:
    resources = broker.resources(context)

    def alter(resource: AlterConfigsResource) -> Pending[None] | None:
        type_, name = resource.resource_type, resource.resource_name
        changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
        return alter_configs(resources, type_, name, changes, validate_only=request.validate_only)

    answers = yield from alter_each(request.resources, alter, _answer)
    return join(answers, lambda responses: IncrementalAlterConfigsResponse(responses=responses))


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
