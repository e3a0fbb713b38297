"""DeleteAcls 0–3: remove the bindings that filters find (KIP-140, KIP-290).

0 knows no prefixes. All are removed together. Without an authorizer SECURITY_DISABLED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kbroker.requests.acl_filters import checked_filter
from kbroker.requests.long_requests import Steps, each
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.security.acl_bindings import AclBinding

_MOST = 10_000  # of one request


def handle(
    broker: Broker, request: DeleteAclsRequest, context: RequestContext
) -> Steps[DeleteAclsResponse | Pending[DeleteAclsResponse]]:
    filters = yield from each(request.filters, checked_filter)
    acls = broker.resources(context).acls(AclOperation.ALTER)
    there = tuple(acls)
    removed: dict[AclBinding, None] = {}
    results: list[DeleteAclsFilterResult] = []
    too_many = False
    for wanted in filters:
        if 0 in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission):
            results.append(DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, "The filter has unknown words."))
            continue
        found: list[AclBinding] = []
        for binding in there:
            yield None
            if wanted.matches(binding):
                found.append(binding)
        too_many = too_many or len(removed.keys() | found) > _MOST
        if too_many:
            message = f"A request may delete {_MOST} ACLs at most."
            results.append(DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, message))
            continue
        removed.update(dict.fromkeys(found))
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=[_deleted(b) for b in found]))
    return mapped(acls.delete(removed), lambda _: DeleteAclsResponse(filter_results=results))


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
