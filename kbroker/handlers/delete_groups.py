"""DeleteGroups 0–2: delete empty groups, with their offsets (KIP-229)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.pending import Pending, join
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kbroker.requests.long_requests import Steps, each
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources


def handle(
    broker: Broker, request: DeleteGroupsRequest, context: RequestContext
) -> Steps[DeleteGroupsResponse | Pending[DeleteGroupsResponse]]:
    resources = broker.resources(context)
    names = dict.fromkeys(request.groups_names)
    results = yield from each(names, lambda name: _delete(resources, name, context))
    return join(results, lambda results: DeleteGroupsResponse(results=results))


def _delete(
    resources: Resources, group_id: str, context: RequestContext
) -> DeletableGroupResult | Pending[DeletableGroupResult]:
    """Not `mapped`: the coordinator waits for the same deletion, and who goes away must not abandon it."""
    result: Pending[DeletableGroupResult] = Pending()

    def settle(deleted: Pending[None]) -> None:
        try:
            deleted.result()
        except Exception as error:
            result.resolve(DeletableGroupResult(group_id, describe(error)[0]))
        else:
            result.resolve(DeletableGroupResult(group_id))

    try:
        groups = resources.groups(group_id, AclOperation.DELETE)
    except ApiError as error:
        return DeletableGroupResult(group_id, error.code)
    groups.delete_group(group_id, context.now_ms).then(settle)
    return result.result() if result.done else result
