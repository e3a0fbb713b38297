"""CreateAcls 0–3: bindings that say who may, or may not, do what (KIP-140, KIP-290).

0 knows no prefixes. One that is there already is fine. Those that make no sense are refused, the others
stored together. Without an authorizer SECURITY_DISABLED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.acls import Created, create_acls
from kbroker.pending import Pending, mapped
from kbroker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kbroker.requests.acl_filters import known, refuse_unknown
from kbroker.requests.long_requests import Steps, each
from kbroker.security.acl_bindings import AclBinding
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: CreateAclsRequest, context: RequestContext
) -> Steps[CreateAclsResponse | Pending[CreateAclsResponse]]:
    bindings = yield from each(request.creations, _binding)
    created = yield from create_acls(broker.resources(context), bindings)
    return mapped(created, _response)


def _response(created: Created) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_message="")
            if error is None
            else AclCreationResult(error.code, error.message)
            for error in created
        ]
    )


def refuse(request: CreateAclsRequest, context: RequestContext, error: BaseException) -> CreateAclsResponse:
    result = AclCreationResult(*describe(error))
    return CreateAclsResponse(results=[result] * len(request.creations))


def _binding(asked: AclCreation) -> AclBinding:
    refuse_unknown(asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type)
    return AclBinding(
        known(AclResourceType, asked.resource_type),
        asked.resource_name,
        known(PatternType, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        known(AclOperation, asked.operation),
        known(Permission, asked.permission_type),
    )
