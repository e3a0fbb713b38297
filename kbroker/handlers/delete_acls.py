"""DeleteAcls 0–3: remove the bindings that filters find (KIP-140, KIP-290).

0 knows no prefixes. All are removed together. Without an authorizer SECURITY_DISABLED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.acls import delete_acls
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kbroker.requests.acl_filters import checked_filter
from kbroker.requests.long_requests import Steps, each, lazily

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.security.acl_bindings import AclBinding


def handle(
    broker: Broker, request: DeleteAclsRequest, context: RequestContext
) -> Steps[DeleteAclsResponse | Pending[DeleteAclsResponse]]:
    filters = yield from each(request.filters, checked_filter)
    deleted = yield from delete_acls(broker.resources(context), filters)
    return mapped(deleted, lambda of: DeleteAclsResponse(filter_results=lazily(of, _result)))


def _result(found: list[AclBinding] | ApiError) -> DeleteAclsFilterResult:
    if isinstance(found, ApiError):
        return DeleteAclsFilterResult(found.code, found.message)
    return DeleteAclsFilterResult(error_message=None, matching_acls=lazily(found, _deleted))


def refuse(request: DeleteAclsRequest, context: RequestContext, error: BaseException) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(*describe(error))
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


def _deleted(binding: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        ErrorCode.NONE,
        None,
        binding.resource_type,
        binding.resource_name,
        binding.pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission,
    )
