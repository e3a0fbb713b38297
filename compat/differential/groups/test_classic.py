"""The same stories told to kbroker and to Apache Kafka 4.3.1: every answer of both is the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat.differential.groups.transcript import (
    CLASSIC,
    Story,
    Transcript,
    Values,
    subscription,
    told_to,
)
from compat.differential.pair import Pair

STORIES: list[Story] = []


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


def two_members(t: Transcript) -> tuple[str, str]:
    """A stable group of two: its leader, and a follower."""
    leader = t.settled_member("one")
    follower = t.new_member("two")
    t.start_join("two", member_id=follower)
    t.wait_for_rebalance("one", leader, 1)
    t.join("one", member_id=leader)
    t.receive("two")
    t.start_sync("two", follower, 2)
    assignments = [{"MemberId": leader, "Assignment": b"1"}, {"MemberId": follower, "Assignment": b"2"}]
    t.sync("one", leader, 2, Assignments=assignments)
    t.receive("two")
    return leader, follower


@story
def a_member_joins_syncs_and_leaves(t: Transcript) -> None:
    member = t.settled_member()
    t.describe()
    t.heartbeat("one", member, 1)
    t.leave("one", {"MemberId": member})
    t.describe()


@story
def two_members_share_a_generation(t: Transcript) -> None:
    leader, follower = two_members(t)
    t.describe()
    t.heartbeat("one", leader, 2)
    t.heartbeat("two", follower, 2)


@story
def wrong_joins(t: Transcript) -> None:
    t.join("one", member_id="nobody")
    t.join("one", GroupId="")
    t.join("one", SessionTimeoutMs=5_999)
    t.join("one", SessionTimeoutMs=1_800_001)
    t.join("one", ProtocolType="")
    t.join("one", Protocols=[])
    t.settled_member("one")
    t.join("two", member_id="nobody")
    t.join("two", ProtocolType="connect")
    t.join("two", Protocols=[{"Name": "other", "Metadata": b""}])
    t.join("two", GroupInstanceId="i", member_id="nobody")


@story
def wrong_syncs(t: Transcript) -> None:
    t.sync("one", "nobody", 1)
    t.sync("one", "nobody", 1, GroupId="")
    member = t.settled_member()
    t.sync("one", "nobody", 1)
    t.sync("one", member, 7)
    t.sync("one", member, 1, ProtocolType="connect")
    t.sync("one", member, 1, ProtocolName="other")
    t.sync("one", member, 1, ProtocolName=None)
    t.sync("one", member, 1, ProtocolType=None)
    t.sync("one", member, 1, GroupInstanceId="i")
    t.sync("one", member, 1, version=4)
    t.sync("one", member, 1)


@story
def wrong_heartbeats(t: Transcript) -> None:
    t.heartbeat("one", "nobody", 1)
    t.heartbeat("one", "nobody", 1, GroupId="")
    member = t.settled_member()
    t.heartbeat("one", "nobody", 1)
    t.heartbeat("one", member, 7)
    t.heartbeat("one", member, -1)
    t.heartbeat("one", member, 1, GroupInstanceId="i")


@story
def wrong_leaves(t: Transcript) -> None:
    t.leave("one", {"MemberId": "nobody"}, {"MemberId": "", "GroupInstanceId": "i"})
    t.ask("one", "LeaveGroup", 5, GroupId="", Members=[{"MemberId": "nobody"}])
    t.ask("one", "LeaveGroup", 2, GroupId=t.group, MemberId="nobody")
    t.ask("one", "LeaveGroup", 2, GroupId="", MemberId="nobody")
    member = t.settled_member()
    t.leave("one", {"MemberId": "nobody"}, {"MemberId": "", "GroupInstanceId": "i"}, {"MemberId": ""})
    t.leave("one", {"MemberId": member, "GroupInstanceId": "i"})
    t.leave("one")
    t.ask("one", "LeaveGroup", 2, GroupId=t.group, MemberId="nobody")
    t.ask("one", "LeaveGroup", 1, GroupId=t.group, MemberId=member)
    t.describe()


@story
def a_pending_member_leaves(t: Transcript) -> None:
    pending = t.new_member("one")
    t.heartbeat("one", pending, 0)
    t.leave("one", {"MemberId": pending, "Reason": "changed its mind"})
    t.join("one", member_id=pending)


@story
def followers_and_leaders_rejoin(t: Transcript) -> None:
    leader, follower = two_members(t)
    t.join("two", member_id=follower)
    t.heartbeat("one", leader, 2)
    t.start_join("one", member_id=leader)
    t.wait_for_rebalance("two", follower, 2)
    t.sync("two", follower, 2)
    t.join("two", member_id=follower)
    t.receive("one")
    t.join("two", member_id=follower)


@story
def a_follower_changes_its_metadata(t: Transcript) -> None:
    leader, follower = two_members(t)
    t.start_join(
        "two",
        member_id=follower,
        Protocols=[{"Name": "range", "Metadata": subscription(user_data=b"changed")}],
    )
    t.wait_for_rebalance("one", leader, 2)
    t.describe()
    t.join("one", member_id=leader)
    t.receive("two")
    t.describe()


@story
def a_sync_is_cancelled_by_a_rebalance(t: Transcript) -> None:
    leader, follower = two_members(t)
    t.start_join("one", member_id=leader)
    t.wait_for_rebalance("two", follower, 2)
    t.join("two", member_id=follower)
    t.receive("one")
    t.start_sync("two", follower, 3)
    t.heartbeat("third", follower, 3)
    t.start_join(
        "one", member_id=leader, Protocols=[{"Name": "range", "Metadata": subscription(user_data=b"changed")}]
    )
    t.receive("two")
    t.join("two", member_id=follower)
    t.receive("one")


@story
def protocols_are_voted_for(t: Transcript) -> None:
    a, b = ({"Name": name, "Metadata": subscription()} for name in "ab")
    both = [a, b]
    other_way = [b, a]
    first = t.new_member("one", Protocols=both)
    t.join("one", member_id=first, Protocols=both)
    second = t.new_member("two", Protocols=other_way)
    t.start_join("two", member_id=second, Protocols=other_way)
    t.wait_for_rebalance("one", first, 1)
    t.join("one", member_id=first, Protocols=[b])
    t.receive("two")


@story
def a_static_member_is_replaced(t: Transcript) -> None:
    first = t.join("one", GroupInstanceId="i")["MemberId"]
    t.sync("one", first, 1, GroupInstanceId="i", Assignments=[{"MemberId": first, "Assignment": b"1"}])
    second = t.join("two", GroupInstanceId="i")["MemberId"]
    t.sync("two", second, 1, GroupInstanceId="i")
    t.heartbeat("one", first, 1, GroupInstanceId="i")
    t.heartbeat("one", first, 1)
    t.heartbeat("two", second, 1, GroupInstanceId="i")
    t.sync("one", first, 1, GroupInstanceId="i")
    t.join("one", member_id=first, GroupInstanceId="i")
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId=first, GroupInstanceId="i")
    t.commit("two", GenerationIdOrMemberEpoch=1, MemberId=second, GroupInstanceId="i")
    t.join("three", version=8, GroupInstanceId="i")
    t.describe()
    t.leave("one", {"MemberId": first, "GroupInstanceId": "i"}, {"MemberId": "", "GroupInstanceId": "i"})
    t.describe()


@story
def old_clients_join_without_an_id(t: Transcript) -> None:
    for version in range(4):
        answer = t.join("one", version=version)
        member = answer["MemberId"]
        generation = answer["GenerationId"]
        t.sync("one", member, generation, version=min(version, 2), Assignments=[])
        t.heartbeat("one", member, generation, version=min(version, 2))
        t.ask("one", "LeaveGroup", min(version, 2), GroupId=t.group, MemberId=member)


@story
def every_version_of_join_and_sync(t: Transcript) -> None:
    for version in range(4, 10):
        member = t.join("one", version=version)["MemberId"]
        joined = t.join("one", version=version, member_id=member)
        t.sync("one", member, joined["GenerationId"], version=min(version - 1, 5))
        t.leave("one", {"MemberId": member})


@story
def groups_of_any_type(t: Transcript) -> None:
    values: Values = {"ProtocolType": "connect", "Protocols": [{"Name": "default", "Metadata": b"x"}]}
    member = t.new_member("one", **values)
    t.join("one", member_id=member, **values)
    t.describe()
    t.sync("one", member, 1, ProtocolType="connect", ProtocolName="default", Assignments=[])
    t.describe()
    t.ask("admin", "ListGroups", 5, StatesFilter=[" STABLE"], TypesFilter=["Classic"])
    t.ask("admin", "OffsetDelete", 0, GroupId=t.group, Topics=[{"Name": t.topic, "Partitions": []}])


@story
def groups_are_listed_described_and_deleted(t: Transcript) -> None:
    t.commit(GroupId=f"{t.group}-simple")
    member = t.settled_member()
    for version in range(6):
        t.ask("admin", "ListGroups", version)
    for states in (["Stable"], ["empty", "dead"], ["nonsense"], ["preparingrebalance"]):
        t.ask("admin", "ListGroups", 4, StatesFilter=states)
    for types in (["classic"], ["CONSUMER"], ["nonsense"], ["share", "classic"]):
        t.ask("admin", "ListGroups", 5, TypesFilter=types)
    for version in range(7):
        t.ask(
            "admin",
            "DescribeGroups",
            version,
            Groups=[t.group, f"{t.group}-missing", f"{t.group}-simple", ""],
        )
    t.ask("admin", "DescribeGroups", 6, Groups=[t.group], IncludeAuthorizedOperations=True)
    t.ask(
        "admin",
        "DeleteGroups",
        2,
        GroupsNames=[t.group, f"{t.group}-missing", f"{t.group}-simple", t.group, ""],
    )
    t.leave("one", {"MemberId": member})
    t.ask("admin", "DeleteGroups", 0, GroupsNames=[t.group])
    t.ask("admin", "ListGroups", 5)


@story
def simple_groups_commit_and_fetch(t: Transcript) -> None:
    t.fetch()
    t.commit()
    for version in range(1, 10):
        t.fetch(version)
    t.fetch(5, Topics=None)
    t.fetch(9, Topics=None)
    t.fetch(9, GroupId=f"{t.group}-missing")
    t.fetch(9, GroupId=f"{t.group}-missing", Topics=None)
    t.fetch(9, GroupId="")
    t.fetch(9, MemberId="nobody", MemberEpoch=3)
    t.fetch(9, Topics=[{"Name": "missing", "PartitionIndexes": [0]}])
    t.fetch(9, Topics=[])
    for version in range(2, 10):
        t.commit(version=version, offset=version)
    t.fetch()
    t.commit(GroupId="")
    t.commit(Topics=[])


@story
def offsets_by_topic_id(t: Transcript) -> None:
    topic_id, unknown = t.topic_id(), b"unknown topic id"
    partitions = [{"PartitionIndex": 0, "CommittedOffset": 7}, {"PartitionIndex": 99, "CommittedOffset": 7}]
    topics = [{"TopicId": each, "Partitions": partitions} for each in (topic_id, unknown, bytes(16))]
    t.commit(version=10, Topics=topics)
    t.commit(version=10, Topics=topics[1:])
    asked = [{"TopicId": each, "PartitionIndexes": [0, 1]} for each in (topic_id, unknown, bytes(16))]
    t.fetch(10, Topics=asked)
    t.fetch(10, Topics=asked[1:])
    t.fetch(10, Topics=None)
    t.fetch(10, Topics=None, GroupId=f"{t.group}-missing")
    t.fetch(9)
    t.commit(version=10, Topics=topics, GenerationIdOrMemberEpoch=5, MemberId="nobody")
    t.commit(version=10, GroupId=f"{t.group}-missing", Topics=topics, GenerationIdOrMemberEpoch=5)


@story
def many_groups_are_fetched_at_once(t: Transcript) -> None:
    t.commit(offset=1)
    t.commit(offset=2, GroupId=f"{t.group}-other")
    asked: list[Values] = [
        {"GroupId": name, "Topics": topics}
        for name in (t.group, f"{t.group}-other", f"{t.group}-missing")
        for topics in (None, [{"Name": t.topic, "PartitionIndexes": [0]}])
    ]
    for stable in (False, True):
        t.ask("admin", "OffsetFetch", 8, Groups=asked, RequireStable=stable)
    t.ask("admin", "OffsetFetch", 8, Groups=[])


@story
def a_member_that_does_not_rejoin_in_time_is_out(t: Transcript) -> None:
    leader, follower = two_members(t)
    changed = [{"Name": "range", "Metadata": subscription(user_data=b"changed")}]
    t.start_join("one", member_id=leader, RebalanceTimeoutMs=1_000, Protocols=changed)
    t.wait_for_rebalance("two", follower, 2)
    t.start_join("two", member_id=follower, RebalanceTimeoutMs=1_000)
    t.receive("one")
    t.receive("two")
    t.start_join("one", member_id=leader, RebalanceTimeoutMs=1_000)
    t.start_sync("two", follower, 3)
    t.receive("one")
    t.start_join("one", member_id=leader, RebalanceTimeoutMs=1_000, Protocols=changed[:1])
    t.receive("one")
    t.receive("two")
    t.heartbeat("two", follower, 3)
    t.describe()


@story
def a_leader_that_does_not_sync_in_time_is_out(t: Transcript) -> None:
    leader = t.new_member("one", RebalanceTimeoutMs=1_000)
    t.join("one", member_id=leader, RebalanceTimeoutMs=1_000)
    t.describe()
    while t.describe()["Groups"][0]["GroupState"] != "Empty":
        t.forget_last()
    t.heartbeat("one", leader, 1)
    t.join("one", member_id=leader)


@story
def a_silent_member_is_out_after_its_session(t: Transcript) -> None:
    member = t.settled_member(SessionTimeoutMs=6_000)
    while t.describe()["Groups"][0]["GroupState"] != "Empty":
        t.forget_last()
    t.heartbeat("one", member, 1)
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId=member)
    t.sync("one", member, 1)
    t.join("one", member_id=member)


@story
def wrong_commits(t: Transcript) -> None:
    t.commit(GenerationIdOrMemberEpoch=1)
    t.commit(version=8, GenerationIdOrMemberEpoch=1)
    t.commit(Topics=[{"Name": "missing", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1}]}])
    partitions = [
        {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": "x" * 4097},
        {"PartitionIndex": 1, "CommittedOffset": -5, "CommittedMetadata": None},
        {"PartitionIndex": 99, "CommittedOffset": 1},
        {
            "PartitionIndex": 2,
            "CommittedOffset": 1,
            "CommittedMetadata": "ü" * 4096,
            "CommittedLeaderEpoch": 7,
        },
    ]
    t.commit(Topics=[{"Name": t.topic, "Partitions": partitions}])
    t.fetch(Topics=[{"Name": t.topic, "PartitionIndexes": [0, 1, 2]}])


@story
def commits_of_members(t: Transcript) -> None:
    member = t.new_member("one")
    t.commit("one", GenerationIdOrMemberEpoch=0, MemberId=member)
    t.join("one", member_id=member)
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId=member)
    t.sync("one", member, 1)
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId=member)
    t.commit("one", GenerationIdOrMemberEpoch=0, MemberId=member)
    t.commit("one", GenerationIdOrMemberEpoch=-1, MemberId=member)
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId="nobody")
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId=member, GroupInstanceId="i")
    t.commit("one", version=2)
    t.commit("one")
    t.fetch()


@story
def offsets_are_deleted(t: Transcript) -> None:
    def delete(group: str, *topics: str) -> None:
        asked = [
            {"Name": name, "Partitions": [{"PartitionIndex": 0}, {"PartitionIndex": 99}]} for name in topics
        ]
        t.ask("admin", "OffsetDelete", 0, GroupId=group, Topics=asked)

    delete(t.group, t.topic)
    delete("", t.topic)
    t.commit()
    delete(t.group, t.topic, "missing")
    t.fetch()
    protocols = [{"Name": "range", "Metadata": subscription(t.topic)}]
    member = t.new_member("one", Protocols=protocols)
    t.join("one", member_id=member, Protocols=protocols)
    t.sync("one", member, 1)
    t.commit("one", GenerationIdOrMemberEpoch=1, MemberId=member)
    delete(t.group, t.topic, "missing")
    t.fetch()


@story
def coordinators_are_found(t: Transcript) -> None:
    for version in range(4):
        t.ask("admin", "FindCoordinator", version, Key=t.group)
    for version in (4, 5, 6):
        t.ask("admin", "FindCoordinator", version, CoordinatorKeys=[t.group, "", "other"])
    t.ask("admin", "FindCoordinator", 6, KeyType=3, CoordinatorKeys=[t.group])
    t.ask("admin", "FindCoordinator", 3, KeyType=3, Key=t.group)
    t.ask("admin", "FindCoordinator", 6, KeyType=2, CoordinatorKeys=["no share partition"])
    t.ask("admin", "FindCoordinator", 5, KeyType=2, CoordinatorKeys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_both_brokers_tell_the_same_story(tell: Story, unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("story")
    pair.same(lambda side: told_to(side.server.bootstrap, tell, name, CLASSIC))
