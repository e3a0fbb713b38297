"""Offsets of share groups seen, set and deleted: kbroker answers as Apache Kafka 4.3.1 does.

Left out is where Kafka goes wrong: it does not answer at all when a partition is described that the topic
does not have, fails the whole group for a topic without partitions, and an empty group id for any topic, and
takes any offset below 0 as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness.batches import Record, batch
from compat.harness.names import unique
from compat.harness.side import Side
from compat.harness.waiting import eventually

Offsets = Mapping[int, int]
TIME_MS = 1_700_000_000_000


class Group:
    """A share group on one broker, and the topics t (two partitions, ten records in the first), u and v."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.name = unique("group")
        self.answers: list[Any] = []
        self.topics = {letter: unique(letter) for letter in "tuv"}
        for letter, topic in self.topics.items():
            side.create_topic(topic, 2 if letter == "t" else 1)
        self.produce("t", 10)
        eventually(self._is_served)

    def produce(self, letter: str, count: int) -> None:
        records = [Record(b"%d" % number) for number in range(count)]
        self.side.produce(self.topics[letter], batch(records, timestamp_ms=TIME_MS))

    def _is_served(self) -> bool:
        """The coordinators need a moment to come to be, and to see the topics."""
        self.side.raw("FindCoordinator", 4, {"KeyType": 0, "CoordinatorKeys": [self.name]})
        offsets = [(letter, {0: 0}) for letter in "tuv"]
        altered = self._alter(f"{self.name}-probe", offsets)
        parts = [part for topic in altered["Responses"] for part in topic["Partitions"]]
        return altered["ErrorCode"] == 0 and all(part["ErrorCode"] == 0 for part in parts)

    def _alter(self, group: str, topics: Sequence[tuple[str, Offsets]]) -> dict[str, Any]:
        asked = [
            {
                "TopicName": self.topics.get(letter, letter),
                "Partitions": [{"PartitionIndex": each, "StartOffset": offsets[each]} for each in offsets],
            }
            for letter, offsets in topics
        ]
        return self.side.raw("AlterShareGroupOffsets", 0, {"GroupId": group, "Topics": asked})

    # what is compared

    def alter(self, *topics: tuple[str, Offsets], group: str | None = None) -> None:
        self._note(self._alter(self.name if group is None else group, topics))

    def delete(self, *letters: str, group: str | None = None) -> None:
        asked = [{"TopicName": self.topics.get(letter, letter)} for letter in letters]
        name = self.name if group is None else group
        self._note(self.side.raw("DeleteShareGroupOffsets", 0, {"GroupId": name, "Topics": asked}))

    def describe(self, topics: Mapping[str, list[int]] | None = None, group: str | None = None) -> None:
        asked = None
        if topics is not None:
            asked = [
                {"TopicName": self.topics.get(letter, letter), "Partitions": partitions}
                for letter, partitions in topics.items()
            ]
        wanted = {"GroupId": self.name if group is None else group, "Topics": asked}
        for version in (0, 1):
            self._note(self.side.raw("DescribeShareGroupOffsets", version, {"Groups": [wanted]}))

    def list(self) -> None:
        groups = self.side.raw("ListGroups", 5, {"StatesFilter": [], "TypesFilter": ["share"]})["Groups"]
        self._note([each for each in groups if each["GroupId"] == self.name])

    def beat(self, epoch: int, *letters: str) -> None:
        """A heartbeat; only its error counts."""
        topics = [self.topics[letter] for letter in letters] or None
        asked = {"GroupId": self.name, "MemberId": "m", "MemberEpoch": epoch, "SubscribedTopicNames": topics}
        self._note(self.side.raw("ShareGroupHeartbeat", 1, asked)["ErrorCode"])

    def wait_until_initialized(self, count: int) -> None:
        """Kafka does it after the heartbeat that asks for it is answered."""
        asked = {"Groups": [{"GroupId": self.name, "Topics": None}]}
        eventually(
            lambda: self.side.raw("DescribeShareGroupOffsets", 1, asked)["Groups"][0]["Topics"],
            lambda topics: sum(len(topic["Partitions"]) for topic in topics) == count,
        )

    def ask(self, api_name: str, version: int, **values: Any) -> None:
        self._note(self.side.raw(api_name, version, values))

    def _note(self, answer: Any) -> None:
        self.answers.append(_sorted(self.side.comparable(answer)))


def _sorted(answer: Any) -> Any:
    """Kafka's maps have no order."""
    if isinstance(answer, dict):
        return {name: _sorted(item) for name, item in answer.items()}
    if isinstance(answer, list):
        return sorted(map(_sorted, answer), key=repr)
    return answer


Story = Callable[[Group], None]
STORIES: list[Story] = []


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_a_story_is_answered_as_by_kafka(pair: Pair, tell: Story) -> None:
    def scenario(side: Side) -> Any:
        group = Group(side)
        tell(group)
        return group.answers

    pair.same(scenario)


@story
def a_group_is_made_by_its_offsets(g: Group) -> None:
    g.alter()
    g.list()
    g.alter(("missing", {0: 1}))
    g.list()
    g.alter(("t", {}))
    g.list()
    g.alter(("t", {0: 3, 1: 0}), ("u", {0: 0}))
    g.describe()
    g.describe({"t": [1], "u": [0]})
    g.produce("t", 5)
    g.describe()


@story
def a_partition_that_is_none_makes_a_group(g: Group) -> None:
    g.alter(("t", {7: 1}))
    g.list()
    g.describe()


@story
def offsets_are_not_compared_with_the_log(g: Group) -> None:
    g.alter(("t", {0: 1000, 1: 5}))
    g.describe()
    g.alter(("t", {0: 10}))
    g.describe()
    g.alter(("t", {0: -1}))
    g.describe()


@story
def topics_and_partitions_that_are_none(g: Group) -> None:
    g.alter(("t", {0: 3, 9: 1}), ("missing", {0: 1, 5: 2}))
    g.describe()
    g.describe({"missing": [0, 1], "v": [0], "t": [0]})
    g.delete("missing", "v", "t")
    g.delete("t")
    g.describe()
    g.describe({"t": [0, 1]})


@story
def what_is_named_twice(g: Group) -> None:
    g.alter(("t", {0: 4, 1: 1}), ("t", {0: 5}))
    g.describe()
    g.delete("t", "t")


@story
def groups_that_are_none(g: Group) -> None:
    for name in (f"{g.name}-none", ""):
        g.describe(group=name)
        g.describe({}, group=name)
        g.delete("t", group=name)
        g.delete(group=name)
    g.describe({"t": [0]}, group=f"{g.name}-none")
    g.alter(("t", {0: 1}), group="")
    g.ask("DescribeShareGroupOffsets", 1, Groups=[])
    twice = {"GroupId": f"{g.name}-none", "Topics": None}
    g.ask("DescribeShareGroupOffsets", 1, Groups=[twice, twice])


@story
def a_classic_group(g: Group) -> None:
    partition = {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}
    topics = [{"Name": g.topics["t"], "Partitions": [partition]}]
    g.ask("OffsetCommit", 8, GroupId=g.name, GenerationIdOrMemberEpoch=-1, MemberId="", Topics=topics)
    g.describe()
    g.describe({"t": [0]})
    g.alter(("t", {0: 1}))
    g.delete("t")
    g.delete()


@story
def a_group_with_a_member(g: Group) -> None:
    g.alter(("t", {0: 2}))
    g.beat(0, "t", "u")
    g.alter(("t", {0: 1}))
    g.alter(("missing", {0: 1}))
    g.alter()
    g.delete("t")
    g.delete()
    g.wait_until_initialized(3)
    g.describe()
    g.beat(-1)
    g.describe()
    g.alter(("t", {1: 0}))
    g.delete("u", "v")
    g.describe()


@story
def a_topic_is_deleted(g: Group) -> None:
    g.alter(("t", {0: 2}), ("v", {0: 0}))
    g.ask("DeleteTopics", 6, Topics=[{"Name": g.topics["v"]}], TimeoutMs=10_000)
    g.wait_until_initialized(1)
    g.describe()
    g.describe({"v": [0]})
    g.delete("v")


@story
def a_group_is_deleted(g: Group) -> None:
    g.alter(("t", {0: 2}))
    g.ask("DeleteGroups", 2, GroupsNames=[g.name])
    g.describe()
    g.describe({"t": [0]})
    g.delete("t")
    g.alter(("t", {1: 4}))
    g.describe()
    g.ask("DeleteGroups", 2, GroupsNames=[g.name])
