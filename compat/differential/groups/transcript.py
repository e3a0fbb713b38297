"""What a broker answers to a story of a group, told over several connections, written down to be compared.

Member ids that brokers make up are replaced by their order of appearance, topic ids by what the story calls
the topic. Host names, throttle times and the wording of error messages (not whether there is one) are left
out, and how soon the next heartbeat of a consumer group is due: that is where kbroker is meant to differ.
Lists that Kafka answers in no order are sorted.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from compat.harness import wire
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

Values = dict[str, Any]
Partitions = dict[str, list[int]]

_UNKNOWN_MEMBER_ID = 25
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
        """`name` is the group's; all other groups and topics of the story have names that begin with it.

        A topic is called by what follows: t, u, … or topic.
        """
        self.group = name
        self.lines: list[tuple[str, Any]] = []
        self.bootstrap = bootstrap
        self._connections: dict[str, Connection] = {}
        self._waiting: dict[str, tuple[str, int]] = {}
        self._member_ids: dict[str, str] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._epochs: dict[str, int] = {}

    @property
    def topic(self) -> str:
        return self.name_of("topic")

    def name_of(self, topic: str) -> str:
        return f"{self.group}-{topic}"

    def topic_id(self, topic: str = "topic") -> bytes:
        return self._topic_ids[topic]

    def ask(self, who: str, api: str, version: int, **values: Any) -> Values:
        self.send(who, api, version, **values)
        return self.receive(who)

    def send(self, who: str, api: str, version: int, **values: Any) -> None:
        if who not in self._connections:
            self._connections[who] = Connection(self.bootstrap, timeout=60)
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

    # topics, made and changed without a line

    def create_topic(self, topic: str, partitions: int) -> None:
        wanted = {"Name": self.name_of(topic), "NumPartitions": partitions, "ReplicationFactor": 1}
        with Connection(self.bootstrap) as admin:
            admin.ask("CreateTopics", 7, Topics=[wanted], timeoutMs=30_000)
            self._topic_ids[topic] = eventually(lambda: self._found_id(admin, topic, partitions)) or b""

    def delete_topic(self, topic: str) -> None:
        with Connection(self.bootstrap) as admin:
            admin.ask("DeleteTopics", 6, Topics=[{"Name": self.name_of(topic)}], TimeoutMs=30_000)
            eventually(lambda: self._found_id(admin, topic, None) is None)

    def wait_until_coordinator_sees(self, *topics: str) -> None:
        """Kafka's group coordinator learns of new topics a moment after its metadata does."""
        others = Transcript(self.bootstrap, f"{self.group}-probe")
        others._topic_ids = self._topic_ids
        names = [self.name_of(topic) for topic in topics]
        try:
            others.join_consumer("probe", SubscribedTopicNames=names)
            others.beat_until_assigned(
                "probe", "".join(topics), RebalanceTimeoutMs=60_000, SubscribedTopicNames=names, owned={}
            )
            others.beat("probe", -1)
        finally:
            others.close()

    # a member of a classic group

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

    # a member of a consumer group (KIP-848)

    def beat(
        self,
        who: str,
        epoch: int | None = None,
        owned: Partitions | None = None,
        version: int = 1,
        **values: Any,
    ) -> Values:
        """A heartbeat in the epoch that the member was told last, unless another is given."""
        if owned is not None:
            values["TopicPartitions"] = [
                {"TopicId": self._topic_ids.get(letter, bytes(15) + b"\1"), "Partitions": held}
                for letter, held in owned.items()
            ]
        topics = values.pop("topics", None)
        if topics is not None:
            values["SubscribedTopicNames"] = [self.name_of(letter) for letter in topics]
        member_epoch = self._epochs.get(who, 0) if epoch is None else epoch
        defaults = {"GroupId": self.group, "MemberId": who, "MemberEpoch": member_epoch}
        answer = self.ask(who, "ConsumerGroupHeartbeat", version, **{**defaults, **values})
        if answer["ErrorCode"] == 0 and member_epoch >= 0:
            self._epochs[who] = answer["MemberEpoch"]
        self.lines[-1][1].pop("HeartbeatIntervalMs")
        return answer

    def join_consumer(self, who: str, *letters: str, **values: Any) -> Values:
        values = {"RebalanceTimeoutMs": 60_000, "owned": {}, **values}
        if "SubscribedTopicRegex" not in values and "SubscribedTopicNames" not in values:
            values["topics"] = letters
        return self.beat(who, 0, **values)

    def epoch_of(self, who: str) -> int:
        return self._epochs[who]

    def describe_consumer(self, version: int = 1) -> Values:
        return self.ask("admin", "ConsumerGroupDescribe", version, GroupIds=[self.group])

    def beat_until_assigned(self, who: str, letters: str, **values: Any) -> None:
        """Heartbeat until these topics are assigned, where Kafka needs a moment to see that they match. Only
        the last answer is written down.
        """
        deadline = time.monotonic() + 30
        while True:
            assignment = self.beat(who, **values)["Assignment"]
            if assignment is not None:
                got = {self._called(topic["TopicId"]) for topic in assignment["TopicPartitions"]}
                if got == set(letters):
                    return
            self.forget_last()
            assert time.monotonic() < deadline, "not assigned"
            time.sleep(0.05)

    # offsets

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

    def _found_id(self, admin: Connection, topic: str, partitions: int | None) -> bytes | None:
        (found,) = admin.ask(
            "Metadata", 12, Topics=[{"Name": self.name_of(topic)}], AllowAutoTopicCreation=False
        )["Topics"]
        if found["ErrorCode"] or (partitions is not None and len(found["Partitions"]) != partitions):
            return None
        topic_id: bytes = found["TopicId"]
        return topic_id

    def _called(self, topic_id: bytes) -> str | bytes:
        return next((topic for topic, known in self._topic_ids.items() if known == topic_id), topic_id)

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._plain(key, each) for key, each in value.items() if key not in _LEFT_OUT}
        if isinstance(value, list):
            return sorted((self._plain("", each) for each in value), key=repr)
        if name in _MEMBER_IDS and isinstance(value, str) and _MADE_UP.match(value):
            return self._member_ids.setdefault(value, f"member {len(self._member_ids) + 1}")
        if name == "TopicId":
            return self._called(value)
        if name == "ErrorMessage":
            return value is not None
        return value.replace(self.group, "group") if isinstance(value, str) else value


Story = Callable[[Transcript], None]
T = TypeVar("T", bound=Transcript)
CLASSIC, CONSUMER = {"topic": 3}, {"t": 4, "u": 2}


def told_to(bootstrap: str, tell: Story, name: str, topics: Mapping[str, int]) -> list[tuple[str, Any]]:
    """The lines of a story; these topics are there when it begins, with so many partitions."""
    return told_in(Transcript(bootstrap, name), tell, name, topics)


def told_in(
    transcript: T, tell: Callable[[T], None], name: str, topics: Mapping[str, int]
) -> list[tuple[str, Any]]:
    try:
        wait_for_coordinator(transcript.bootstrap, name)
        for topic, partitions in topics.items():
            transcript.create_topic(topic, partitions)
        if topics is CONSUMER:
            transcript.wait_until_coordinator_sees(*topics)
        tell(transcript)
    finally:
        transcript.close()
    return transcript.lines


def wait_for_coordinator(bootstrap: str, group: str) -> None:
    """The first of all requests make Kafka create its offsets topic."""
    with Connection(bootstrap) as admin:
        eventually(
            lambda: (
                admin.ask("FindCoordinator", 3, Key=group)["ErrorCode"] == 0
                and admin.ask("Heartbeat", 0, GroupId=group, MemberId="x")["ErrorCode"] == _UNKNOWN_MEMBER_ID
            )
        )
