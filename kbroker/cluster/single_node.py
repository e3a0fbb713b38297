"""A cluster of one broker: it leads, coordinates and controls everything.

Its leader epoch rises with every unclean start (adr/0004); that of a topic is 0 when it is made.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbroker.cluster.interface import CoordinatorType, Node

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.requests.context import RequestContext
    from kbroker.topics.registry import Topic

logger = logging.getLogger("kbroker.broker")


class SingleNode:
    def __init__(self, settings: Settings, cluster_id: str, unclean_starts: int) -> None:
        self._settings = settings
        self.cluster_id = cluster_id
        self.node_id: int = settings["node.id"]
        self.unclean_starts = unclean_starts
        self._rack = settings.text("broker.rack")
        self._replicas = [self.node_id]
        self._told: set[tuple[str, tuple[str, int]]] = set()

    def nodes(self, context: RequestContext) -> list[Node]:
        return [self._node(context)]

    def controller_id(self) -> int:
        return self.node_id

    def has_node(self, node_id: int) -> bool:
        return node_id == self.node_id

    def leader(self, topic: Topic, partition: int, context: RequestContext) -> int:
        return self.node_id

    def replicas(self, topic: Topic, partition: int) -> list[int]:
        return self._replicas

    def leader_epoch(self, topic: Topic) -> int:
        return self.unclean_starts + topic.leader_epoch_base

    def first_leader_epoch_base(self) -> int:
        """For a topic that is made now: its leader epoch is 0."""
        return -self.unclean_starts

    def coordinator(self, kind: CoordinatorType, key: str, context: RequestContext) -> Node:
        return self._node(context)

    def _node(self, context: RequestContext) -> Node:
        """With the address that clients on this connection are told: the configured one, or the one used."""
        used, port = context.local_address
        host, port = self._settings.advertised_address(context.listener) or (used, port)
        address = (host or used, port)
        if (context.listener, address) not in self._told:
            self._told.add((context.listener, address))
            logger.info("clients on listener %s are told to connect to %s:%s", context.listener, *address)
        return Node(self.node_id, *address, self._rack)
