"""AddRaftVoter 0–1: take a controller into the quorum (KIP-853).

The quorum is one broker and does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from kbroker.cluster.voters import check_endpoints, check_voter, refuse_change
from kbroker.errors import describe
from kbroker.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(broker: Broker, request: AddRaftVoterRequest, context: RequestContext) -> Never:
    broker.resources(context).check_cluster(AclOperation.ALTER)
    check_voter(broker, request.cluster_id, request.voter_id, request.voter_directory_id)
    check_endpoints(broker, {listener.name for listener in request.listeners})
    refuse_change()


def refuse(
    request: AddRaftVoterRequest, context: RequestContext, error: BaseException
) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(0, *describe(error))
