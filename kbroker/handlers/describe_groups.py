"""DescribeGroups 0–6: state, protocol and members of classic groups.

3 adds authorized operations (KIP-430), 4 static members (KIP-345). A group that is missing, or of another
type, is Dead; from 6 on it is GROUP_ID_NOT_FOUND too (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.errors import GroupIdNotFound
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_FIRST_WITH_NOT_FOUND = 6


def handle(broker: Broker, request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    resources = broker.resources(context)
    return DescribeGroupsResponse(
        groups=lazily(
            list(dict.fromkeys(request.groups)), lambda name: _group(resources, name, request, context)
        )
    )


def _group(
    resources: Resources, group_id: str, request: DescribeGroupsRequest, context: RequestContext
) -> DescribedGroup:
    try:
        groups = resources.groups(group_id, AclOperation.DESCRIBE)
        description = groups.describe_classic(group_id)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    except GroupIdNotFound as error:
        described = DescribedGroup(group_id=group_id, group_state="Dead")
        if context.api_version >= _FIRST_WITH_NOT_FOUND:
            described.error_code, described.error_message = ErrorCode.GROUP_ID_NOT_FOUND, str(error)
            return described
    else:
        described = DescribedGroup(
            group_id=group_id,
            group_state=description.state,
            protocol_type=description.protocol_type,
            protocol_data=description.protocol_name,
            members=lazily(description.members, lambda member: DescribedGroupMember(*member)),
        )
    if request.include_authorized_operations:
        described.authorized_operations = resources.authorized_operations(AclResourceType.GROUP, group_id)
    return described
