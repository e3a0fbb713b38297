"""CreateAcls 0–3: bindings that say who may, or may not, do what (KIP-140, KIP-290).

0 knows no prefixes. One that is there already is fine. Those that make no sense are refused, the others
stored together. Without an authorizer SECURITY_DISABLED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kbroker.requests.acl_filters import known, refuse_unknown
from kbroker.requests.long_requests import Steps
from kbroker.security.acl_bindings import AclBinding
from kbroker.security.acls import CLUSTER_NAME, AclOperation, AclResourceType, PatternType, Permission

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_MOST = 10_000  # new ones of one request
_UNKNOWN, _ANY = 0, 1  # of every kind of word


def handle(
    broker: Broker, request: CreateAclsRequest, context: RequestContext
) -> Steps[CreateAclsResponse | Pending[CreateAclsResponse]]:
    for asked in request.creations:
        refuse_unknown(
            asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type
        )
        yield None
    acls = broker.resources(context).acls(AclOperation.ALTER)
    results: list[AclCreationResult] = []
    bindings: list[AclBinding] = []
    for asked in request.creations:
        yield None
        try:
            bindings.append(_checked(asked))
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                raise
            results.append(AclCreationResult(error.code, error.message))
        else:
            results.append(AclCreationResult(error_message=""))
    if len(bindings) > _MOST:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"A request may create {_MOST} ACLs at most.")
    return mapped(acls.create(bindings), lambda _: CreateAclsResponse(results=results))


def refuse(request: CreateAclsRequest, context: RequestContext, error: BaseException) -> CreateAclsResponse:
    result = AclCreationResult(*describe(error))
    return CreateAclsResponse(results=[result] * len(request.creations))


def _checked(asked: AclCreation) -> AclBinding:
    binding = AclBinding(
        known(AclResourceType, asked.resource_type),
        asked.resource_name,
        known(PatternType, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        known(AclOperation, asked.operation),
        known(Permission, asked.permission_type),
    )
    words = (binding.resource_type, binding.pattern_type, binding.operation, binding.permission)
    if _ANY in words or binding.pattern_type is PatternType.MATCH:
        # Kafka does not foresee it, and refuses the whole request.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "What a filter may say makes no binding.")
    if binding.resource_type is AclResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only resource of type CLUSTER is {CLUSTER_NAME}.")
    if not binding.resource_name:
        raise _invalid("The name of the resource is empty.")
    if _UNKNOWN in words:
        raise _invalid("The binding has words that kbroker does not know.")
    return binding


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
