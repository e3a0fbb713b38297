"""Filters of DescribeAcls and DeleteAcls, and the numbers of an ACL, as requests have them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from kbroker.requests.answers import BadRequest
from kbroker.security.acl_bindings import AclFilter
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

if TYPE_CHECKING:
    from kbroker.protocol.messages.delete_acls import DeleteAclsFilter
    from kbroker.protocol.messages.describe_acls import DescribeAclsRequest

E = TypeVar("E", bound=IntEnum)


def known(kind: type[E], number: int) -> E:
    """UNKNOWN for what a newer client may mean."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def refuse_unknown(*numbers: int) -> None:
    """A client that says of its own words that it does not know them is not answered, as in Kafka."""
    if 0 in numbers:
        raise BadRequest("an ACL, or a filter of ACLs, with an UNKNOWN in it")


def checked_filter(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    refuse_unknown(
        asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type
    )
    return AclFilter(
        known(AclResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        known(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        known(AclOperation, asked.operation),
        known(Permission, asked.permission_type),
    )
