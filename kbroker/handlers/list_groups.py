"""ListGroups 0–5: all groups; 4 adds states and a filter by them (KIP-518), 5 likewise types (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kbroker.requests.long_requests import lazily

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(broker: Broker, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    listed = broker.resources(context).list_groups(set(request.states_filter), set(request.types_filter))
    return ListGroupsResponse(groups=lazily(listed, lambda group: ListedGroup(*group)))
