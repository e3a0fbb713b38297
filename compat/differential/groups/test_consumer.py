"""Stories of consumer groups told to kbroker and to Apache Kafka 4.3.1: every answer of both is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.groups.transcript import CONSUMER, Story, Transcript, told_to
from compat.differential.pair import Pair

STORIES: list[Story] = []


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


def two_members(t: Transcript) -> None:
    """A stable group of members m and n, two partitions of topic t each."""
    t.join_consumer("m", "t")
    t.join_consumer("n", "t")
    held = t.beat("m")["Assignment"]["TopicPartitions"][0]["Partitions"]
    t.beat("m", owned={"t": held})
    t.beat("n")


@story
def one_member_comes_and_goes(t: Transcript) -> None:
    t.join_consumer("m", "t")
    t.describe_consumer()
    t.describe_consumer(version=0)
    t.beat("m", owned={"t": [0, 1, 2, 3]})
    t.beat("m", owned={"t": [0, 1, 2, 3]}, RebalanceTimeoutMs=60_000, topics="t")
    t.beat("m", -1)
    t.describe_consumer()
    t.describe()
    t.beat("m", 1)
    t.join_consumer("m", "t")


@story
def wrong_requests(t: Transcript) -> None:
    t.beat("m", 1)
    t.beat("m", -1)
    t.join_consumer("m", "t", GroupId="")
    t.join_consumer("m", "t", MemberId="")
    t.join_consumer("m", "t", InstanceId="")
    t.join_consumer("m", "t", RackId=" ")
    t.join_consumer("m", "t", RebalanceTimeoutMs=-1)
    t.join_consumer("m", "t", owned=None)
    t.join_consumer("m", "t", owned={"t": [0]})
    t.join_consumer("m", SubscribedTopicNames=None)
    t.join_consumer("m", "t", ServerAssignor="unknown")
    t.join_consumer("m", SubscribedTopicRegex="a(")
    t.join_consumer("m", SubscribedTopicRegex="(?=a)")
    t.join_consumer("m", SubscribedTopicRegex=r"(a)\1")
    t.beat("m", -2)
    t.beat("m", -3)
    t.describe_consumer()
    t.ask("admin", "ConsumerGroupDescribe", 1, GroupIds=["", t.group])


@story
def a_member_id_of_the_brokers_making(t: Transcript) -> None:
    answer = t.join_consumer("m", "t", MemberId="", version=0)
    assert answer["ErrorCode"] == 0
    t.lines[-1][1]["MemberId"] = answer["MemberId"] != ""
    t.beat("m", MemberId=answer["MemberId"], version=0)
    t.lines[-1][1]["MemberId"] = answer["MemberId"] != ""


@story
def two_members_share(t: Transcript) -> None:
    t.join_consumer("m", "t")
    t.join_consumer("n", "t")
    t.describe_consumer()
    held = t.beat("m")["Assignment"]["TopicPartitions"][0]["Partitions"]
    t.describe_consumer()
    t.beat("n")
    t.beat("m", owned={"t": [0, 1, 2, 3]})
    t.beat("m", owned={"t": held})
    t.beat("n")
    t.describe_consumer()
    t.beat("n", -1)
    t.beat("m", owned={"t": held})
    t.describe_consumer()


@story
def wrong_epochs(t: Transcript) -> None:
    two_members(t)
    t.beat("nobody", 1)
    t.beat("m", 99)
    t.beat("m", t.epoch_of("m") - 1, owned={})
    t.beat("m", t.epoch_of("m") - 1, owned=None)
    t.beat("m", t.epoch_of("m") - 1, owned={"u": [0]})
    t.beat("n", t.epoch_of("n") - 2, owned={})
    t.join_consumer("m", "t")
    t.beat("m")


@story
def static_members(t: Transcript) -> None:
    t.join_consumer("old", "t", InstanceId="i")
    t.join_consumer("new", "t", InstanceId="i")
    t.join_consumer("old", "t", InstanceId="i")
    t.beat("old", InstanceId="j")
    t.beat("new", 1, InstanceId="i")
    t.beat("old", -2, InstanceId="i")
    t.describe_consumer()
    t.join_consumer("new", "t", InstanceId="i")
    t.beat("old", 1, InstanceId="i")
    t.beat("old", -1, InstanceId="i")
    t.beat("new", InstanceId="i")
    t.describe_consumer()
    t.beat("new", -1, InstanceId="i")
    t.describe_consumer()


@story
def subscriptions_change(t: Transcript) -> None:
    t.join_consumer("m", "t", "u")
    t.beat("m", topics="u", owned={"t": [0, 1, 2, 3], "u": [0, 1]})
    t.describe_consumer()
    t.beat("m", owned={"u": [0, 1]})
    t.beat("m", topics=(), owned={"u": [0, 1]})
    t.beat("m", owned={})
    t.beat("m", topics="tu", owned={})
    t.describe_consumer()


@story
def without_a_subscription(t: Transcript) -> None:
    t.join_consumer("m")
    t.describe_consumer()
    t.beat("m", 0, topics="", RebalanceTimeoutMs=60_000, owned={})


@story
def assignors(t: Transcript) -> None:
    t.join_consumer("a", "t", "u", ServerAssignor="range", RackId="r")
    t.join_consumer("b", "t", "u", ServerAssignor="range")
    t.beat("a", owned={"t": [0, 1], "u": [0]})
    t.beat("b")
    t.describe_consumer()


@story
def topics_change(t: Transcript) -> None:
    t.join_consumer("m", "t", "v")
    t.create_topic("v", 1)
    t.beat_until_assigned("m", "tv")
    t.delete_topic("t")
    t.beat_until_assigned("m", "v")
    t.beat("m", owned={"v": [0]})
    t.describe_consumer()


@story
def a_regular_expression(t: Transcript) -> None:
    t.join_consumer("m", SubscribedTopicRegex=f"{t.group}-[tu]")
    t.forget_last()
    t.beat_until_assigned(
        "m", "tu", RebalanceTimeoutMs=60_000, SubscribedTopicRegex=f"{t.group}-[tu]", owned={}
    )
    t.lines[-1][1].pop("MemberEpoch")  # Kafka resolves the expression after the member has joined
    described = t.describe_consumer()["Groups"][0]
    t.forget_last()
    assert described["Members"][0]["SubscribedTopicRegex"] == f"{t.group}-[tu]"


@story
def commits_and_fetches_by_epoch(t: Transcript) -> None:
    two_members(t)
    topics: list[dict[str, Any]] = [
        {
            "Name": t.name_of("t"),
            "Partitions": [
                {"PartitionIndex": partition, "CommittedOffset": 5, "CommittedMetadata": ""}
                for partition in range(4)
            ],
        }
    ]
    m, n = t.epoch_of("m"), t.epoch_of("n")
    for member, epoch in (
        ("", -1),
        ("nobody", 1),
        ("m", m),
        ("m", m - 1),
        ("m", m + 1),
        ("n", n - 1),
        ("n", 0),
    ):
        t.commit(member or "admin", MemberId=member, GenerationIdOrMemberEpoch=epoch, Topics=topics)
    t.commit("m", version=8, MemberId="m", GenerationIdOrMemberEpoch=m, Topics=topics)
    fetched = [{"Name": t.name_of("t"), "PartitionIndexes": [0, 1, 2, 3]}]
    for member, epoch in ((None, -1), ("m", m), ("m", m - 1), ("m", m + 1), ("nobody", 1), ("m", -1)):
        t.fetch(MemberId=member, MemberEpoch=epoch, Topics=fetched)


@story
def administration(t: Transcript) -> None:
    t.join_consumer("m", "t")
    t.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=[])
    t.ask("admin", "ListGroups", 5, StatesFilter=["stable"], TypesFilter=["Consumer"])
    t.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=["classic"])
    t.ask("admin", "ListGroups", 3)
    t.describe(version=5)
    t.describe()
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.ask("admin", "ConsumerGroupDescribe", 1, GroupIds=[t.group], IncludeAuthorizedOperations=True)
    t.beat("m", -1)
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.describe_consumer()


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_both_brokers_tell_the_same_story(tell: Story, unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("consumer")
    pair.same(lambda side: told_to(side.server.bootstrap, tell, name, CONSUMER))
