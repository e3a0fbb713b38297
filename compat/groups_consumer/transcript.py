"""Stories of consumer groups (KIP-848), told over several connections and written down to be compared.

Topic ids are replaced by topic names, and how soon the next heartbeat is due is left out: that is where
kbroker is meant to differ.
"""

from __future__ import annotations

import time
from typing import Any

from compat.groups.transcript import Transcript, Values
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

Partitions = dict[str, list[int]]
GROUP_ID_NOT_FOUND = 69


class ConsumerTranscript(Transcript):
    """`topics` are made by the story's teller; a topic is named by its last letter: t, u, …"""

    def __init__(self, bootstrap: str, name: str) -> None:
        super().__init__(bootstrap, name)
        self._ids: dict[str, bytes] = {}
        self._epochs: dict[str, int] = {}

    def create_topic(self, letter: str, partitions: int) -> None:
        topic = {"Name": self.name_of(letter), "NumPartitions": partitions, "ReplicationFactor": 1}
        with Connection(self._bootstrap) as admin:
            admin.ask("CreateTopics", 7, Topics=[topic], timeoutMs=30_000)
            self._ids[letter] = eventually(lambda: self._topic_id(admin, letter, partitions))

    def grow_topic(self, letter: str, partitions: int) -> None:
        topic = {"Name": self.name_of(letter), "Count": partitions, "Assignments": None}
        with Connection(self._bootstrap) as admin:
            admin.ask("CreatePartitions", 3, Topics=[topic], TimeoutMs=30_000, ValidateOnly=False)
            eventually(lambda: self._topic_id(admin, letter, partitions))

    def delete_topic(self, letter: str) -> None:
        with Connection(self._bootstrap) as admin:
            admin.ask("DeleteTopics", 6, Topics=[{"Name": self.name_of(letter)}], TimeoutMs=30_000)
            eventually(lambda: self._topic_id(admin, letter, None) is None)

    def wait_until_coordinator_sees(self, *letters: str) -> None:
        """Kafka's group coordinator learns of new topics a moment after its metadata does."""
        others = ConsumerTranscript(self._bootstrap, self.group)
        others.group = f"{self.group}-probe"
        others._ids = self._ids
        names = [self.name_of(letter) for letter in letters]
        try:
            others.join_consumer("probe", SubscribedTopicNames=names)
            others.beat_until_assigned(
                "probe", "".join(letters), RebalanceTimeoutMs=60_000, SubscribedTopicNames=names, owned={}
            )
            others.beat("probe", -1)
        finally:
            others.close()

    def name_of(self, letter: str) -> str:
        return f"{self.group}-{letter}"

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
                {"TopicId": self._ids.get(letter, bytes(15) + b"\1"), "Partitions": held}
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
                got = {self._letter(topic["TopicId"]) for topic in assignment["TopicPartitions"]}
                if got == set(letters):
                    return
            self.forget_last()
            assert time.monotonic() < deadline, "not assigned"
            time.sleep(0.05)

    def _topic_id(self, admin: Connection, letter: str, partitions: int | None) -> bytes | None:
        (topic,) = admin.ask(
            "Metadata", 12, Topics=[{"Name": self.name_of(letter)}], AllowAutoTopicCreation=False
        )["Topics"]
        if topic["ErrorCode"] or (partitions is not None and len(topic["Partitions"]) != partitions):
            return None
        topic_id: bytes = topic["TopicId"]
        return topic_id

    def _letter(self, topic_id: bytes) -> str:
        return next((letter for letter, known in self._ids.items() if known == topic_id), topic_id.hex())

    def _plain(self, name: str, value: Any) -> Any:
        if name == "TopicId":
            return self._letter(value)
        return super()._plain(name, value)
