"""Who is who in the cluster, as a broker tells its clients: nodes, leaders, replicas, coordinators.

Every answer that names a broker asks here. What is told depends on the listener that the client uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kbroker.topics.registry import Topic


class Connected(Protocol):
    """How a client reaches brokers: by which listener, and at which address of it."""

    @property
    def listener(self) -> str: ...
    @property
    def local_address(self) -> tuple[str, int]: ...


class Reached(NamedTuple):
    """A listener at an address, for clients that have no connection to it yet."""

    listener: str
    local_address: tuple[str, int]


class Node(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


class CoordinatorType(IntEnum):
    """What FindCoordinator can ask for."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Cluster(Protocol):
    cluster_id: str
    node_id: int  # of this broker

    def nodes(self, client: Connected) -> Sequence[Node]:
        """The brokers that this client may connect to."""
        ...

    def by_first_listener(self, host: str) -> Connected:
        """How somebody who came to this host by another door reaches the brokers."""
        ...

    def controller_id(self) -> int: ...

    def has_node(self, node_id: int) -> bool: ...

    def leader(self, topic: Topic, partition: int, client: Connected) -> int:
        """The node that this client shall send its requests for a partition to."""
        ...

    def replicas(self, topic: Topic, partition: int) -> list[int]: ...

    def leader_epoch(self, topic: Topic) -> int: ...

    def coordinator(self, kind: CoordinatorType, key: str, client: Connected) -> Node:
        """Who coordinates a group or a transactional id."""
        ...
