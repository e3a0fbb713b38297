"""Stories of share groups told to kbroker and to Apache Kafka 4.3.1: every answer of both is the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.groups.transcript import CONSUMER, subscription, told_in
from compat.differential.pair import Pair
from compat.differential.share_groups.transcript import ShareTranscript
from compat.harness.side import Side
from compat.harness.waiting import eventually

Story = Callable[[ShareTranscript], None]
STORIES: list[Story] = []


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


@story
def one_member_comes_and_goes(t: ShareTranscript) -> None:
    t.settle("m", "t", RackId="rack")
    t.describe_share()
    t.beat("m")
    t.beat("m", topics="t")
    t.beat("m", RackId="another")
    t.describe_share(IncludeAuthorizedOperations=True)
    t.beat("m", -1)
    t.describe_share()
    t.beat("m", 1)
    t.beat("m", -1)
    t.join_share("m", "t")


@story
def wrong_requests(t: ShareTranscript) -> None:
    t.beat("m", 1)
    t.beat("m", -1)
    t.join_share("m", "t", GroupId="")
    t.join_share("m", "t", GroupId=" ")
    t.join_share("m", "t", MemberId=" ")
    for member_id in ("", "m" * 37):
        t.join_share("m", "t", MemberId=member_id)
        t.lines[-1][1].pop("ErrorMessage")  # Kafka says nothing
    t.join_share("m", "t", RackId="")
    t.join_share("m", "t", RackId=" ")
    t.join_share("m", "")
    t.beat("m", 0)
    t.beat("m", -2)
    t.beat("m", 5, topics="t")
    t.describe_share()
    t.ask("admin", "ShareGroupDescribe", 1, GroupIds=["", t.group, t.group])


@story
def wrong_epochs(t: ShareTranscript) -> None:
    t.settle("m", "t")
    t.beat("nobody", 1)
    t.beat("nobody", -1)
    t.join_share("n", "t")
    t.beat("m")
    current = t.epoch_of("m")
    t.beat("m", current - 1)
    t.beat("m", current + 1)
    t.join_share("o", "t")
    t.beat("m", current)
    t.beat("m", current - 1)
    t.beat("m", current)
    t.beat("m", 99)
    t.join_share("m", "t")


@story
def members_share_partitions(t: ShareTranscript) -> None:
    t.uneven = True
    t.settle("m", "tu")
    t.join_share("n", "tu")
    t.describe_share()
    t.beat("m")
    t.join_share("o", "tu")
    t.beat("m")
    t.beat("n")
    t.describe_share()
    t.beat("n", -1)
    t.beat("m")
    t.beat("o")
    t.describe_share()


@story
def more_members_than_partitions(t: ShareTranscript) -> None:
    t.settle("m", "u")
    t.join_share("n", "u")
    t.join_share("o", "u")
    t.beat("m")
    t.beat("n")
    t.beat("o")
    t.describe_share()


@story
def differing_subscriptions(t: ShareTranscript) -> None:
    t.settle("m", "tu")
    t.join_share("n", "t")
    t.join_share("o", "u")
    t.beat("m")
    t.beat("n")
    t.describe_share()


@story
def subscriptions_change(t: ShareTranscript) -> None:
    t.settle("m", "tu")
    t.beat("m", topics="u")
    t.beat("m", topics="u")
    t.describe_share()
    t.beat("m", topics="")
    t.describe_share()
    t.beat("m", topics="tu")
    t.describe_share()


@story
def topics_that_are_not_there(t: ShareTranscript) -> None:
    t.join_share("m", "v")
    t.beat("m")
    t.describe_share()
    t.create_topic("v", 2)
    t.settle("m", "v")
    t.describe_share()
    t.beat("m")


@story
def topics_that_go(t: ShareTranscript) -> None:
    t.create_topic("v", 2)
    t.settle("m", "vu")
    t.delete_topic("v")
    deadline = time.monotonic() + 30
    while t.beat("m")["Assignment"] is None:
        t.forget_last()
        assert time.monotonic() < deadline, "not told of the deletion"
        time.sleep(0.05)
    t.describe_share()


@story
def a_group_that_is_full(t: ShareTranscript) -> None:
    t.uneven = True
    t.settle("m", "t")
    t.join_share("n", "t")
    t.join_share("o", "t")
    t.join_share("p", "t")
    t.join_share("m", "t")
    t.beat("n", -1)
    t.join_share("p", "t")


@story
def a_member_that_is_silent(t: ShareTranscript) -> None:
    for name, value in (("heartbeat.interval.ms", "500"), ("session.timeout.ms", "1000")):
        config = {"Name": f"share.{name}", "ConfigOperation": 0, "Value": value}
        resource = {"ResourceType": 32, "ResourceName": t.group, "Configs": [config]}
        t.ask("admin", "IncrementalAlterConfigs", 1, Resources=[resource], ValidateOnly=False)
    with_timeout = t.join_share("m", "t")
    assert with_timeout["ErrorCode"] == 0
    t.forget_last()
    eventually(lambda: t.describe_share()["Groups"][0]["GroupState"] == "Empty")
    del t.lines[2:]
    t.beat("m", 2)
    described = t.describe_share()["Groups"][0]
    t.forget_last()
    assert described["Members"] == []


def other_protocols(t: ShareTranscript) -> None:
    """What the share group answers to requests that are not for it."""
    topic = {"Name": t.name_of("t")}
    join: dict[str, Any] = {
        "GroupId": t.group,
        "SessionTimeoutMs": 10_000,
        "RebalanceTimeoutMs": 10_000,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": subscription(t.name_of("t"))}],
    }
    t.ask("c", "JoinGroup", 9, MemberId="", **join)
    t.ask("c", "JoinGroup", 9, MemberId="m", **join)
    t.ask("c", "JoinGroup", 3, MemberId="", **{**join, "Protocols": join["Protocols"]})
    t.sync("c", "m", 1)
    t.heartbeat("c", "m", 1)
    t.leave("c", {"MemberId": "m"})
    consumer = {"GroupId": t.group, "SubscribedTopicNames": [t.name_of("t")], "TopicPartitions": []}
    for epoch in (0, t.epoch_of("m"), -1):
        t.ask(
            "c",
            "ConsumerGroupHeartbeat",
            1,
            MemberId="m",
            MemberEpoch=epoch,
            RebalanceTimeoutMs=1000,
            **consumer,
        )
    offset = {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}
    commit = [{**topic, "Partitions": [offset]}]
    for version in (5, 8, 9):
        t.commit("c", version=version, Topics=commit)
        member = {"GenerationIdOrMemberEpoch": t.epoch_of("m"), "MemberId": "m"}
        t.commit("c", version=version, Topics=commit, **member)
    for member_id, epoch in ((None, -1), ("m", t.epoch_of("m")), ("m", 99), ("nobody", 1)):
        fetched = [{**topic, "PartitionIndexes": [0]}]
        t.fetch(MemberId=member_id, MemberEpoch=epoch, Topics=fetched)
    t.fetch(Topics=None)
    deleted = [{**topic, "Partitions": [{"PartitionIndex": 0}]}]
    t.ask("admin", "OffsetDelete", 0, GroupId=t.group, Topics=deleted)
    t.describe(version=5)
    t.describe(version=6)
    t.describe_consumer()


@story
def other_protocols_in_a_share_group_with_members(t: ShareTranscript) -> None:
    t.settle("m", "t")
    other_protocols(t)


@story
def other_protocols_in_an_empty_share_group(t: ShareTranscript) -> None:
    t.settle("m", "t")
    t.beat("m", -1)
    other_protocols(t)
    t.describe_share()


@story
def share_members_in_other_groups(t: ShareTranscript) -> None:
    member = t.settled_member("one")
    for epoch in (0, 3, -1):
        t.beat("m", epoch, topics="t")
    t.describe_share()
    t.leave("one", {"MemberId": member})
    t.join_share("m", "t")
    t.group += "-consumers"
    t.ask(
        "c",
        "ConsumerGroupHeartbeat",
        1,
        GroupId=t.group,
        MemberId="c",
        MemberEpoch=0,
        RebalanceTimeoutMs=1000,
        SubscribedTopicNames=["none"],
        TopicPartitions=[],
    )
    t.forget_last()
    t.join_share("m", "t")
    t.ask("c", "ConsumerGroupHeartbeat", 1, GroupId=t.group, MemberId="c", MemberEpoch=-1)
    t.join_share("m", "t")
    t.describe_share()


@story
def administration(t: ShareTranscript) -> None:
    t.settle("m", "t")
    t.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=[])
    t.ask("admin", "ListGroups", 5, StatesFilter=["stable"], TypesFilter=["Share"])
    t.ask("admin", "ListGroups", 5, StatesFilter=["Empty"], TypesFilter=["share"])
    t.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=["classic", "consumer"])
    t.ask("admin", "ListGroups", 3)
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.beat("m", -1)
    t.ask("admin", "ListGroups", 5, StatesFilter=["Empty"], TypesFilter=["share"])
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.describe_share()
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.settle("m", "t")
    t.beat("m")


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_both_brokers_tell_the_same_story(tell: Story, unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("share")
    pair.same(lambda side: told_in(ShareTranscript(side.server.bootstrap, name), tell, name, CONSUMER))


def test_without_the_feature_both_refuse(unique: Callable[[str], str], pair: Pair) -> None:
    group = unique("refused")

    def set_level(side: Side, level: int, upgrade_type: int) -> Any:
        update = {"Feature": "share.version", "MaxVersionLevel": level, "UpgradeType": upgrade_type}
        answer = side.ask("UpdateFeatures", 2, {"timeoutMs": 30_000, "FeatureUpdates": [update]})
        if answer["ErrorCode"] == 0:
            eventually(lambda: finalized(side) == (level or None))
        return answer

    def finalized(side: Side) -> int | None:
        asked = {"ClientSoftwareName": "test", "ClientSoftwareVersion": "1"}
        features = side.raw("ApiVersions", 4, asked)["FinalizedFeatures"]
        return next((each["MaxVersionLevel"] for each in features if each["Name"] == "share.version"), None)

    def scenario(side: Side) -> Any:
        seen = [finalized(side), set_level(side, 2, 1), set_level(side, 0, 1), set_level(side, 0, 2)]
        try:
            member = {"GroupId": group, "MemberId": "m", "MemberEpoch": 0, "SubscribedTopicNames": ["t"]}
            seen.append(side.ask("ShareGroupHeartbeat", 1, member))
            seen.append(side.ask("ShareGroupHeartbeat", 1, member | {"GroupId": ""}))
            seen.append(side.ask("ShareGroupDescribe", 1, {"GroupIds": [group, ""]}))
            seen.append({key: side.offered[key] for key in (76, 77)})
        finally:
            seen.append(set_level(side, 1, 1))
        return seen

    pair.same(scenario)
