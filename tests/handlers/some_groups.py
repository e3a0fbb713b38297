"""Groups to list, describe and delete."""

from __future__ import annotations

from kbroker.coordinators.groups.classic.protocol import JoinRequest
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from tests.handlers.conftest import Cluster


def make_groups(cluster: Cluster) -> None:
    """One group with a member, one that only has an offset."""
    cluster.create("orders")
    coordinator = cluster.broker.groups
    coordinator.join_group(
        JoinRequest(
            "busy", "", "i", "app", "/10.0.0.1", 10_000, 10_000, "consumer", (("range", b"metadata"),)
        ),
        cluster.now_ms,
    )
    coordinator.offsets.commit(CommitRequest("simple", [NewOffset("orders", 0, 1)]), cluster.now_ms)
