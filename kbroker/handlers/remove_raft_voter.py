"""RemoveRaftVoter 0: take a controller out of the quorum (KIP-853).

The quorum is one broker and does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from kbroker.cluster.voters import check_voter, refuse_change
from kbroker.errors import describe
from kbroker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(broker: Broker, request: RemoveRaftVoterRequest, context: RequestContext) -> Never:
    broker.resources(context).check_cluster(AclOperation.ALTER)
    check_voter(broker, request.cluster_id, request.voter_id, request.voter_directory_id)
    refuse_change()


def refuse(
    request: RemoveRaftVoterRequest, context: RequestContext, error: BaseException
) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(0, *describe(error))
