"""AlterConfigs 0–2: replaces all the configs that resources have of their own (KIP-133).

What is not named goes back to its default, which is why clients prefer IncrementalAlterConfigs. Each resource
is taken or refused as a whole, and may appear once. Loggers are not altered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.alteration import alter_each
from kbroker.operations.configs import replace_configs
from kbroker.pending import Pending, join
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: AlterConfigsRequest, context: RequestContext
) -> Steps[AlterConfigsResponse | Pending[AlterConfigsResponse]]:
    resources = broker.resources(context)

    def alter(resource: AlterConfigsResource) -> Pending[None] | None:
        type_, name = resource.resource_type, resource.resource_name
        configs = [(config.name, config.value) for config in resource.configs]
        return replace_configs(resources, type_, name, configs, validate_only=request.validate_only)

    answers = yield from alter_each(request.resources, alter, _answer)
    return join(answers, lambda responses: AlterConfigsResponse(responses=responses))


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
