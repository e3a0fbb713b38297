"""DescribeAcls 0–3: the bindings that a filter finds, by the resources that they speak of (KIP-140, KIP-290).

0 knows no prefixes. Without an authorizer SECURITY_DISABLED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.acls import find_acls
from kbroker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kbroker.requests.acl_filters import checked_filter
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: DescribeAclsRequest, context: RequestContext
) -> Steps[DescribeAclsResponse]:
    found = yield from find_acls(broker.resources(context), checked_filter(request))
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for binding in found:
        yield None
        pattern = (binding.resource_type, binding.resource_name, binding.pattern_type)
        resource = resources.get(pattern)
        if resource is None:
            resource = resources[pattern] = DescribeAclsResource(*pattern)
        resource.acls.append(
            AclDescription(binding.principal, binding.host, binding.operation, binding.permission)
        )
    return DescribeAclsResponse(error_message="", resources=list(resources.values()))


def refuse(
    request: DescribeAclsRequest, context: RequestContext, error: BaseException
) -> DescribeAclsResponse:
    code, message = describe(error)
    return DescribeAclsResponse(error_code=code, error_message=message)
