"""A client of classic groups: one member joins and syncs."""

from __future__ import annotations

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kbroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


def join(cluster, version, member_id="", **fields):
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=fields.pop("session_timeout_ms", 10_000),
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"metadata")],
        **fields,
    )
    response = cluster.send(request, version)
    if not hasattr(response, "error_code"):
        cluster.broker.groups.tick(cluster.now_ms)
        response = response.result()
    return response


def joined(cluster, version):
    """A member's JoinGroup response, both steps of it."""
    response = join(cluster, version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        response = join(cluster, version, response.member_id)
    assert response.error_code == ErrorCode.NONE
    return response


def sync(cluster, version, member_id, generation_id, **fields):
    if version >= 5:
        fields = {"protocol_type": "consumer", "protocol_name": "range", **fields}
    assignments = [SyncGroupRequestAssignment(member_id, b"assignment")]
    request = SyncGroupRequest(
        group_id="g",
        generation_id=generation_id,
        member_id=member_id,
        assignments=assignments,
        **fields,
    )
    return cluster.send(request, version)
