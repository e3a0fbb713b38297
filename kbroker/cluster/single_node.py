"""A cluster of one broker: it leads, coordinates and controls everything.

Its leader epoch rises with every unclean start (adr/0004); that of a topic is 0 when it is made.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbroker.cluster.interface import Connected, CoordinatorType, Node, Reached

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
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
        self.ports: dict[str, int] = {}
        """At which its listeners are open."""
        self._told: set[tuple[str, tuple[str, int]]] = set()

    def nodes(self, client: Connected) -> list[Node]:
        return [self._node(client)]

    def by_first_listener(self, host: str) -> Connected:
        first = self._settings.listeners[0]
        return Reached(first.name, (host, self.ports.get(first.name, first.port)))

    def controller_id(self) -> int:
        return self.node_id

    def has_node(self, node_id: int) -> bool:
        return node_id == self.node_id

    def leader(self, topic: Topic, partition: int, client: Connected) -> int:
        return self.node_id

    def replicas(self, topic: Topic, partition: int) -> list[int]:
        return self._replicas

    def leader_epoch(self, topic: Topic) -> int:
        return self.unclean_starts + topic.leader_epoch_base

    def first_leader_epoch_base(self) -> int:
        """For a topic that is made now: its leader epoch is 0."""
        return -self.unclean_starts

    def coordinator(self, kind: CoordinatorType, key: str, client: Connected) -> Node:
        return self._node(client)

    def _node(self, client: Connected) -> Node:
        """With the address that clients on this connection are told: the configured one, or the one used."""
        used, port = client.local_address
        host, port = self._settings.advertised_address(client.listener) or (used, port)
        address = (host or used, port)
        if (client.listener, address) not in self._told:
            self._told.add((client.listener, address))
            logger.info("clients on listener %s are told to connect to %s:%s", client.listener, *address)
        return Node(self.node_id, *address, self._rack)
