"""DescribeConfigs 0–4: configs of topics, brokers, loggers, groups and client metrics subscriptions, with
their source (KIP-133), synonyms (KIP-226), type and doc line (KIP-569).

A resource is answered once, however often it is named. No names of configs, or null, means all. Configs that
do not exist are left out without a word. A resource of an unknown type spoils the whole request; any other
problem is its own resource's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.resources import ResourceType
from kbroker.config.settings import ConfigSource
from kbroker.errors import describe
from kbroker.operations.configs import describe_configs
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kbroker.requests.long_requests import lazily

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.description import Described
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_KNOWN_TYPES = frozenset(ResourceType)


def handle(
    broker: Broker, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    asked = _once(request.resources)
    if all(resource.resource_type in _KNOWN_TYPES for resource in asked):
        resources = broker.resources(context)
        return DescribeConfigsResponse(
            results=lazily(asked, lambda resource: _result(resources, request, resource, context))
        )
    problem = ApiError(ErrorCode.INVALID_REQUEST, "A resource has a type that has no configs.")
    return DescribeConfigsResponse(results=lazily(asked, lambda resource: _refused(resource, problem)))


def _once(resources: list[DescribeConfigsResource]) -> list[DescribeConfigsResource]:
    """A resource that is named several times is answered once, with all that was asked of it."""
    by_name: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in resources:
        first = by_name.setdefault((resource.resource_type, resource.resource_name), resource)
        if first is resource:
            continue
        if first.configuration_keys and resource.configuration_keys:
            first.configuration_keys += resource.configuration_keys
        else:
            first.configuration_keys = None
    return list(by_name.values())


def _result(
    resources: Resources,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    context: RequestContext,
) -> DescribeConfigsResult:
    try:
        described = describe_configs(resources, ResourceType(resource.resource_type), resource.resource_name)
    except Exception as error:
        return _refused(resource, error)
    wanted = set(resource.configuration_keys or ())
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        # Where there is no error Kafka sends an empty message, not null.
        error_message="",
        configs=[_config(each, request, context) for each in described if not wanted or each.name in wanted],
    )


def _config(
    described: Described, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResourceResult:
    config = DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=described.is_sensitive,
        config_type=described.type,
        documentation=described.doc if request.include_documentation or described.doc == "" else None,
    )
    if request.include_synonyms:
        config.synonyms = [DescribeConfigsSynonym(*synonym) for synonym in described.synonyms]
    if context.api_version == 0:
        config.is_default = described.source is ConfigSource.DEFAULT_CONFIG
    return config


def _refused(resource: DescribeConfigsResource, error: Exception) -> DescribeConfigsResult:
    code, message = describe(error)
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
