"""What a broker answers to a story told over several connections, written down so that two brokers compare.

Ids that brokers make up are replaced by their order of appearance; host names, throttle times and the wording
of error messages (not whether there is one) are left out; lists that Kafka answers in no order are sorted.
"""

from __future__ import annotations

import re
import struct
import time
from typing import Any

from compat.harness import wire
from compat.harness.connection import Connection

Values = dict[str, Any]

_REBALANCE_IN_PROGRESS = 27
_LEFT_OUT = frozenset(("ThrottleTimeMs", "Host", "Port", "ClientHost"))
_MEMBER_IDS = frozenset(("MemberId", "Leader"))
_MADE_UP = re.compile(r".*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


def subscription(*topics: str, user_data: bytes | None = None) -> bytes:
    """A consumer's metadata, version 0."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    data = b"\xff\xff\xff\xff" if user_data is None else struct.pack(">i", len(user_data)) + user_data
    return struct.pack(">hi", 0, len(topics)) + names + data


class Transcript:
    def __init__(self, bootstrap: str, name: str) -> None:
        """`name` is the group's; all other groups and topics of the story have names that begin with it."""
        self.group = name
        self.topic = f"{name}-topic"
        self.lines: list[tuple[str, Any]] = []
        self._bootstrap = bootstrap
        self._connections: dict[str, Connection] = {}
        self._waiting: dict[str, tuple[str, int]] = {}
        self._member_ids: dict[str, str] = {}
        self._topic_ids: dict[bytes, str] = {}

    def ask(self, who: str, api: str, version: int, **values: Any) -> Values:
        self.send(who, api, version, **values)
        return self.receive(who)

    def send(self, who: str, api: str, version: int, **values: Any) -> None:
        if who not in self._connections:
            self._connections[who] = Connection(self._bootstrap, timeout=60)
        self._connections[who].send(api, version, values)
        self._waiting[who] = (api, version)

    def receive(self, who: str) -> Values:
        api_name, version = self._waiting.pop(who)
        api = wire.apis()[api_name]
        body = self._connections[who].receive(flexible=version in api.response.flexible)
        answer: Values = wire.decode(api.response, version, body)
        if api_name == "ListGroups":
            answer["Groups"] = [
                group for group in answer["Groups"] if group["GroupId"].startswith(self.group)
            ]
        self.lines.append((f"{who}: {api_name} {version}", self._plain("", answer)))
        return answer

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def forget_last(self, count: int = 1) -> None:
        """Leave out the answers just received, where how many they are is a matter of time."""
        del self.lines[-count:]

    # the requests of a member, short

    def join(self, who: str, version: int = 9, member_id: str = "", **values: Any) -> Values:
        self.start_join(who, version, member_id, **values)
        return self.receive(who)

    def start_join(self, who: str, version: int = 9, member_id: str = "", **values: Any) -> None:
        defaults: Values = {
            "GroupId": self.group,
            "SessionTimeoutMs": 10_000,
            "MemberId": member_id,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": "range", "Metadata": subscription(user_data=who.encode())}],
        }
        if version >= 1:
            defaults["RebalanceTimeoutMs"] = 20_000
        self.send(who, "JoinGroup", version, **{**defaults, **values})

    def new_member(self, who: str, **values: Any) -> str:
        """The id of a new member that has not joined yet."""
        return str(self.join(who, **values)["MemberId"])

    def sync(self, who: str, member_id: str, generation: int, version: int = 5, **values: Any) -> Values:
        self.start_sync(who, member_id, generation, version, **values)
        return self.receive(who)

    def start_sync(self, who: str, member_id: str, generation: int, version: int = 5, **values: Any) -> None:
        defaults: Values = {"GroupId": self.group, "GenerationId": generation, "MemberId": member_id}
        if version >= 5:
            defaults |= {"ProtocolType": "consumer", "ProtocolName": "range"}
        self.send(who, "SyncGroup", version, **{**defaults, **values})

    def heartbeat(self, who: str, member_id: str, generation: int, version: int = 4, **values: Any) -> Values:
        defaults = {"GroupId": self.group, "GenerationId": generation, "MemberId": member_id}
        return self.ask(who, "Heartbeat", version, **{**defaults, **values})

    def wait_for_rebalance(self, who: str, member_id: str, generation: int) -> None:
        while True:
            code = self.heartbeat(who, member_id, generation)["ErrorCode"]
            self.forget_last()
            if code == _REBALANCE_IN_PROGRESS:
                return
            time.sleep(0.01)

    def leave(self, who: str, *members: Values, version: int = 5) -> Values:
        return self.ask(who, "LeaveGroup", version, GroupId=self.group, Members=list(members))

    def describe(self, version: int = 6) -> Values:
        return self.ask("admin", "DescribeGroups", version, Groups=[self.group])

    def settled_member(self, who: str = "one", **values: Any) -> str:
        """The only member of a stable group."""
        member = self.new_member(who, **values)
        self.join(who, member_id=member, **values)
        assignment = [{"MemberId": member, "Assignment": b"assignment"}]
        self.sync(who, member, 1, Assignments=assignment)
        return member

    def topic_id(self) -> bytes:
        """The id of the story's topic, a different one on each broker."""
        answer = self.ask("admin", "Metadata", 12, Topics=[{"Name": self.topic}])
        self.forget_last()
        topic_id: bytes = answer["Topics"][0]["TopicId"]
        self._topic_ids[topic_id] = "topic"
        return topic_id

    def commit(self, who: str = "admin", version: int = 9, offset: int = 42, **values: Any) -> Values:
        topic: Values = {
            "Partitions": [{"PartitionIndex": 0, "CommittedOffset": offset, "CommittedMetadata": ""}]
        }
        topic |= {"Name": self.topic} if version < 10 else {}
        return self.ask(who, "OffsetCommit", version, **{"GroupId": self.group, "Topics": [topic], **values})

    def fetch(self, version: int = 9, **values: Any) -> Values:
        if version < 8:
            topics: Any = [{"Name": self.topic, "PartitionIndexes": [0, 1]}]
            return self.ask(
                "admin", "OffsetFetch", version, **{"GroupId": self.group, "Topics": topics, **values}
            )
        group: Values = {"GroupId": self.group, "Topics": [{"Name": self.topic, "PartitionIndexes": [0, 1]}]}
        return self.ask("admin", "OffsetFetch", version, Groups=[{**group, **values}])

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._plain(key, each) for key, each in value.items() if key not in _LEFT_OUT}
        if isinstance(value, list):
            return sorted((self._plain("", each) for each in value), key=repr)
        if name in _MEMBER_IDS and isinstance(value, str) and _MADE_UP.match(value):
            return self._member_ids.setdefault(value, f"member {len(self._member_ids) + 1}")
        if name == "TopicId":
            return self._topic_ids.get(value, value)
        if name == "ErrorMessage":
            return value is not None
        return value.replace(self.group, "group") if isinstance(value, str) else value
