"""Stories of streams groups: what a member says in its heartbeats, and the topologies it brings.

A topology is written short: `topology(sub("0", sources="t", changelogs=("store",)))`, with topics by what the
story calls them. Of a status the code counts; its words only in that there are some.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from compat.differential.groups.transcript import Transcript, Values
from compat.harness.connection import Connection
from compat.harness.waiting import eventually

Tasks = Mapping[str, list[int]]
Until = Callable[[Values], bool]

MISSING_SOURCE_TOPICS, MISSING_INTERNAL_TOPICS = 1, 3
_SETTLING = frozenset((MISSING_SOURCE_TOPICS, MISSING_INTERNAL_TOPICS))
_UNKNOWN_MEMBER_ID = 25


def ready(answer: Values) -> bool:
    """All topics are there."""
    return not any(status["StatusCode"] in _SETTLING for status in answer["Status"] or ())


class StreamsTranscript(Transcript):
    counts_tasks = False
    """Whether only how many tasks members have is written down: which of equal ones, no rule says."""

    def topic_info(self, topic: str, partitions: int = 0, **configs: str) -> Values:
        named = [{"Key": key.replace("_", "."), "Value": value} for key, value in configs.items()]
        return {
            "Name": self.name_of(topic),
            "Partitions": partitions,
            "ReplicationFactor": 0,
            "TopicConfigs": named,
        }

    def sub(
        self,
        subtopology: str = "0",
        sources: str = "t",
        *,
        changelogs: tuple[str, ...] = (),
        repartitions: tuple[Any, ...] = (),
        sinks: tuple[str, ...] = (),
        copartitioned: tuple[Values, ...] = (),
        **values: Any,
    ) -> Values:
        """`repartitions`: names, or pairs of a name and a number of partitions."""
        made = [each if isinstance(each, tuple) else (each, 0) for each in repartitions]
        return {
            "SubtopologyId": subtopology,
            "SourceTopics": [self.name_of(topic) for topic in sources],
            "SourceTopicRegex": [],
            "StateChangelogTopics": [self.topic_info(each, cleanup_policy="compact") for each in changelogs],
            "RepartitionSinkTopics": [self.name_of(each) for each in sinks],
            "RepartitionSourceTopics": [self.topic_info(name, count) for name, count in made],
            "CopartitionGroups": [
                {"SourceTopics": [], "SourceTopicRegex": [], "RepartitionSourceTopics": [], **each}
                for each in copartitioned
            ],
            **values,
        }

    def stream(
        self,
        who: str,
        epoch: int | None = None,
        tasks: Tasks | None = None,
        standby: Tasks | None = None,
        **values: Any,
    ) -> Values:
        """A heartbeat in the epoch that the member was told last, unless another is given."""
        if tasks is not None or standby is not None:
            values = {
                "ActiveTasks": _ids(tasks or {}),
                "StandbyTasks": _ids(standby or {}),
                "WarmupTasks": [],
                **values,
            }
        member_epoch = self._epochs.get(who, 0) if epoch is None else epoch
        defaults = {"GroupId": self.group, "MemberId": who, "MemberEpoch": member_epoch}
        answer = self.ask(who, "StreamsGroupHeartbeat", 0, **{**defaults, **values})
        if answer["ErrorCode"] == 0 and member_epoch >= 0:
            self._epochs[who] = answer["MemberEpoch"]
        line = self.lines[-1][1]
        if answer["ErrorCode"] == 0 and member_epoch >= 0:
            line.pop("HeartbeatIntervalMs")
        for status in line["Status"] or ():
            status["StatusDetail"] = status["StatusDetail"] != ""
        if self.counts_tasks:
            self._count_tasks(line)
        return answer

    def join_streams(
        self, who: str, *subtopologies: Values, topology_epoch: int = 0, **values: Any
    ) -> Values:
        defaults: Values = {
            "RebalanceTimeoutMs": 60_000,
            "ProcessId": f"process of {who}",
            "Topology": {"Epoch": topology_epoch, "Subtopologies": list(subtopologies) or [self.sub()]},
        }
        return self.stream(who, 0, {}, **{**defaults, **values})

    def stream_until(self, who: str, until: Until = ready, **values: Any) -> Values:
        """Heartbeat until the answer is such, where Kafka needs a moment. Only that one is written down."""
        deadline = time.monotonic() + 30
        while True:
            answer = self.stream(who, **values)
            if until(answer):
                return answer
            self.forget_last()
            assert time.monotonic() < deadline, f"still {answer}"
            time.sleep(0.05)

    def describe_streams(self, **values: Any) -> Values:
        answer = self.ask("admin", "StreamsGroupDescribe", 0, **{"GroupIds": [self.group], **values})
        if self.counts_tasks:
            for group in self.lines[-1][1]["Groups"]:
                for member in group["Members"]:
                    self._count_tasks(member["Assignment"])
                    self._count_tasks(member["TargetAssignment"])
        return answer

    def _count_tasks(self, line: Values) -> None:
        for role in ("ActiveTasks", "StandbyTasks", "WarmupTasks"):
            if line[role] is not None:
                line[role] = sum(len(each["Partitions"]) for each in line[role])

    def topics_made(self, *topics: str) -> None:
        """How wide these topics are, and which configs they were made with."""
        with Connection(self.bootstrap) as admin:
            names = [{"Name": self.name_of(topic)} for topic in topics]
            found = admin.ask("Metadata", 12, Topics=names, AllowAutoTopicCreation=False)["Topics"]
            configs = admin.ask(
                "DescribeConfigs",
                4,
                Resources=[
                    {"ResourceType": 2, "ResourceName": each["Name"], "ConfigurationKeys": None}
                    for each in names
                ],
            )["Results"]
        own = {
            each["ResourceName"]: {
                config["Name"]: config["Value"] for config in each["Configs"] if config["ConfigSource"] == 1
            }
            for each in configs
        }
        made = {each["Name"]: [len(each["Partitions"]), own[each["Name"]]] for each in found}
        told = {name.replace(self.group, "group"): what for name, what in sorted(made.items())}
        self.lines.append(("topics made", told))

    def grow_topic(self, topic: str, partitions: int) -> None:
        wanted = {"Name": self.name_of(topic), "Count": partitions, "Assignments": None}
        with Connection(self.bootstrap) as admin:
            admin.ask("CreatePartitions", 3, Topics=[wanted], TimeoutMs=30_000, ValidateOnly=False)

    def set_group_config(self, name: str, value: str) -> None:
        """Without a line. Until the broker obeys it, too."""
        resource = {"ResourceType": 32, "ResourceName": self.group}
        with Connection(self.bootstrap) as admin:
            setting = {"Name": name, "ConfigOperation": 0, "Value": value}
            answer = admin.ask("IncrementalAlterConfigs", 1, Resources=[{**resource, "Configs": [setting]}])
            assert answer["Responses"][0]["ErrorCode"] == 0, answer
            asked = {**resource, "ConfigurationKeys": [name]}
            eventually(
                lambda: (
                    admin.ask("DescribeConfigs", 4, Resources=[asked])["Results"][0]["Configs"][0]["Value"]
                    == value
                )
            )


def _ids(tasks: Tasks) -> list[Values]:
    return [{"SubtopologyId": each, "Partitions": held} for each, held in tasks.items()]


Story = Callable[[StreamsTranscript], None]
TOPICS = {"t": 4, "u": 2}


def told_to(bootstrap: str, tell: Story, name: str, topics: Mapping[str, int] = TOPICS) -> list[Any]:
    """The lines of a story; these topics are there when it begins, and the coordinator knows them."""
    transcript = StreamsTranscript(bootstrap, name)
    try:
        with Connection(bootstrap) as admin:
            eventually(
                lambda: (
                    admin.ask("FindCoordinator", 3, Key=name)["ErrorCode"] == 0
                    and admin.ask("Heartbeat", 0, GroupId=name, MemberId="x")["ErrorCode"]
                    == _UNKNOWN_MEMBER_ID
                )
            )
        for topic, partitions in topics.items():
            transcript.create_topic(topic, partitions)
        transcript.wait_until_coordinator_sees(*topics)
        tell(transcript)
    finally:
        transcript.close()
    return transcript.lines
