"""ACL bindings found, created and deleted. Without an authorizer there are none: SECURITY_DISABLED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import CLUSTER_NAME, AclOperation, AclResourceType, PatternType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.requests.resources import Resources
    from kbroker.security.acl_bindings import AclBinding, AclFilter

_MOST = 10_000  # created or deleted together
_UNKNOWN, _ANY = 0, 1  # of every kind of word

Created = list[ApiError | None]
"""Of each binding what is wrong with it; None: it is there now."""
Deleted = list["list[AclBinding] | ApiError"]
"""Of each filter what it found, and is gone, or why it was not taken."""


def find_acls(resources: Resources, wanted: AclFilter) -> Steps[list[AclBinding]]:
    """In the order in which they were created."""
    found: list[AclBinding] = []
    for binding in resources.acls(AclOperation.DESCRIBE):
        yield None
        if wanted.matches(binding):
            found.append(binding)
    return found


def create_acls(resources: Resources, wanted: Sequence[AclBinding]) -> Steps[Created | Pending[Created]]:
    """Those that make no sense are refused, the others stored together. One that is there already is fine."""
    acls = resources.acls(AclOperation.ALTER)
    problems: Created = []
    taken: list[AclBinding] = []
    for binding in wanted:
        yield None
        try:
            check_acl(binding)
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                raise
            problems.append(error)
        else:
            problems.append(None)
            taken.append(binding)
    if len(taken) > _MOST:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"A request may create {_MOST} ACLs at most.")
    return mapped(acls.create(taken), lambda _: problems)


def delete_acls(resources: Resources, filters: Sequence[AclFilter]) -> Steps[Deleted | Pending[Deleted]]:
    """All that the filters find are removed together."""
    acls = resources.acls(AclOperation.ALTER)
    there = tuple(acls)
    removed: dict[AclBinding, None] = {}
    results: Deleted = []
    too_many = False
    for wanted in filters:
        if _UNKNOWN in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission):
            results.append(_invalid("The filter has unknown words."))
            continue
        found: list[AclBinding] = []
        for binding in there:
            yield None
            if wanted.matches(binding):
                found.append(binding)
        too_many = too_many or len(removed.keys() | found) > _MOST
        if too_many:
            results.append(_invalid(f"A request may delete {_MOST} ACLs at most."))
            continue
        removed.update(dict.fromkeys(found))
        results.append(found)
    return mapped(acls.delete(removed), lambda _: results)


def check_acl(binding: AclBinding) -> None:
    """Whether it makes sense. Raises ApiError."""
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


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
