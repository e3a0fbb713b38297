"""One broker, asked raw requests: its answers come with comparable values.

What must differ between two clusters is replaced by a name: topic ids, cluster ids, ports, producer ids.
Throttle times are dropped; of an error message only its presence counts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from compat.harness import wire
from compat.harness.batches import whole_batches
from compat.harness.brokers import Server
from compat.harness.connection import Connection, ConnectionClosed
from compat.harness.waiting import eventually

DROPPED = frozenset({"ThrottleTimeMs"})
TEXTS = frozenset({"ErrorMessage", "BatchIndexErrorMessage"})
CLOSED = "connection closed"
TEXT = "<text>"


class Side:
    """A broker as a scenario sees it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = server.name
        self.node_id = server.node_id
        self._connection: Connection | None = None
        self._names: dict[Any, str] = {}

    @cached_property
    def offered(self) -> dict[int, tuple[int, int]]:
        """API key -> oldest and newest version."""
        offered = self.raw("ApiVersions", 0)["ApiKeys"]
        return {each["ApiKey"]: (each["MinVersion"], each["MaxVersion"]) for each in offered}

    def raw(self, api_name: str, version: int, values: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer as it came, ids and all."""
        known = wire.supported(wire.apis()[api_name].request, version, values or {})
        return self.connection.ask(api_name, version, known)

    def ask(self, api_name: str, version: int, values: dict[str, Any] | None = None) -> Any:
        """The answer with comparable values; CLOSED when the broker hung up instead."""
        try:
            return self.comparable(self.raw(api_name, version, values))
        except ConnectionClosed:
            self.disconnect()
            return CLOSED

    def every_version(self, api_name: str, values: dict[str, Any] | None = None) -> dict[int, Any]:
        """Version -> the answer; fields that a version lacks are left out of the request."""
        return {version: self.ask(api_name, version, values) for version in versions(api_name)}

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self.server.bootstrap, timeout=20)
        return self._connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def use_another_connection(self) -> None:
        """Leave the present connection to the caller, who closes it."""
        self._connection = None

    def call(self, value: Any, name: str) -> Any:
        """Let this value (an id of this cluster) appear under a name in what is compared."""
        self._names[value] = f"<{name}>"
        return value

    def create_topic(self, topic: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic (configs with _ for .), wait until it leads its partitions; returns its id."""
        settings = [{"Name": name.replace("_", "."), "Value": value} for name, value in configs.items()]
        wanted = {"Name": topic, "NumPartitions": partitions, "ReplicationFactor": 1, "Configs": settings}
        (created,) = self.raw("CreateTopics", 7, {"Topics": [wanted], "timeoutMs": 10_000})["Topics"]
        assert created["ErrorCode"] == 0, created
        eventually(lambda: self.is_served(topic, partitions))
        topic_id: bytes = self.call(created["TopicId"], f"id of {topic}")
        return topic_id

    def is_served(self, topic: str, partitions: int) -> bool:
        """Metadata names the leader a moment before it leads: ask for the offsets instead."""
        wanted = [{"PartitionIndex": number, "Timestamp": -1} for number in range(partitions)]
        answer = self.raw("ListOffsets", 4, {"Topics": [{"Name": topic, "Partitions": wanted}]})
        return all(each["ErrorCode"] == 0 for each in answer["Topics"][0]["Partitions"])

    def produce(self, topic: str, records: bytes, partition: int = 0) -> dict[str, Any]:
        """Append with acks=all; the partition's part of the answer, as it came."""
        data = {"Name": topic, "PartitionData": [{"Index": partition, "Records": records}]}
        answer = self.raw("Produce", 9, {"Acks": -1, "TimeoutMs": 10_000, "TopicData": [data]})
        appended: dict[str, Any] = answer["Responses"][0]["PartitionResponses"][0]
        return appended

    def comparable(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._field(name, item) for name, item in value.items() if name not in DROPPED}
        if isinstance(value, list):
            return [self.comparable(item) for item in value]
        if isinstance(value, bytes):
            return self._names.get(value, value)
        return value

    def _field(self, name: str, value: Any) -> Any:
        if name in TEXTS and value:
            return TEXT
        if name == "Records" and value is not None:
            return whole_batches(value)
        if name == "Port" and value == self.server.port:
            return "<port>"
        if name in {"ClusterId", "SessionId", "ProducerId"} and value not in {-1, 0, None, ""}:
            return self._names.get(value, f"<{name}>")
        return self.comparable(value)


def versions(api_name: str) -> Iterable[int]:
    """The versions of Apache Kafka's definition that a client can send."""
    valid = wire.apis()[api_name].request.versions
    return range(valid.first, valid.last + 1)


def errors(answer: Any) -> Any:
    """Only the error codes of an answer, in their places."""
    if isinstance(answer, dict):
        kept = {name: errors(item) for name, item in answer.items()}
        return {
            name: item for name, item in kept.items() if name == "ErrorCode" or item not in ({}, [], None)
        }
    if isinstance(answer, list):
        return [errors(item) for item in answer]
    return answer if isinstance(answer, int) and not isinstance(answer, bool) else None


def request_frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    """A frame with a header of version 1 and any API key."""
    header = struct.pack(">hhih", api_key, version, 1, -1)
    return struct.pack(">i", len(header) + len(body)) + header + body
