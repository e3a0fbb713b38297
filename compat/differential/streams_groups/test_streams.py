"""Stories of streams groups told to kbroker and to Apache Kafka 4.3.1: every answer of both is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.differential.streams_groups.transcript import Story, StreamsTranscript, told_to
from compat.harness.brokers import SETTINGS, Server, running
from compat.harness.waiting import eventually

STORIES: list[Story] = []
NO_DELAYS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS | NO_DELAYS) as servers:
        yield servers


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


def active(answer: dict[str, Any]) -> dict[str, list[int]]:
    return {each["SubtopologyId"]: each["Partitions"] for each in answer["ActiveTasks"]}


def two_members(t: StreamsTranscript) -> None:
    """A stable group of members m and n, two tasks each."""
    t.join_streams("m")
    t.join_streams("n")
    held = active(t.stream("m"))
    t.stream("m", tasks=held)
    t.stream("n")


@story
def one_member_comes_and_goes(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.describe_streams()
    t.stream("m", tasks={"0": [0, 1, 2, 3]})
    t.stream("m")
    t.stream("m", -1)
    t.describe_streams()
    t.stream("m", 1)
    t.stream("m", -1)
    t.join_streams("m")
    t.describe_streams()


@story
def wrong_requests(t: StreamsTranscript) -> None:
    t.stream("m", 1)
    t.stream("m", -1)
    t.join_streams("m", GroupId="")
    t.join_streams("m", MemberId="")
    t.join_streams("m", MemberId=" ")
    t.join_streams("m", RackId="")
    t.join_streams("m", InstanceId="")
    t.join_streams("m", InstanceId="i")
    t.join_streams("m", RebalanceTimeoutMs=-1)
    t.join_streams("m", Topology=None)
    t.join_streams("m", ActiveTasks=None)
    t.join_streams("m", StandbyTasks=None)
    t.join_streams("m", WarmupTasks=None)
    t.join_streams("m", ActiveTasks=None, StandbyTasks=None, WarmupTasks=None)
    t.join_streams("m", ActiveTasks=[{"SubtopologyId": "0", "Partitions": [0]}])
    t.join_streams("m", StandbyTasks=[{"SubtopologyId": "0", "Partitions": [0]}])
    t.join_streams("m", WarmupTasks=[{"SubtopologyId": "0", "Partitions": [0]}])
    t.join_streams("m", t.sub(SourceTopicRegex=["a.*"]))
    t.join_streams("m", TaskOffsets=[{"SubtopologyId": "0", "Partition": 0, "Offset": 1}])
    t.join_streams("m", TaskEndOffsets=[{"SubtopologyId": "0", "Partition": 0, "Offset": 1}])
    t.stream("m", -1)
    t.stream("m", -2)
    t.stream("m", -2, InstanceId="i")
    t.stream("m", -3)
    t.stream("m", 1, Topology={"Epoch": 0, "Subtopologies": []})
    t.describe_streams()
    t.describe_streams(GroupIds=["", t.group])


@story
def wrong_topologies(t: StreamsTranscript) -> None:
    wrong_changelog = t.topic_info("store", 3)
    t.join_streams("m", t.sub(StateChangelogTopics=[wrong_changelog]))
    t.join_streams("m", t.sub(SourceTopics=["__consumer_offsets"]))
    t.join_streams("m", t.sub(SourceTopics=["not a name"]))
    t.join_streams("m", t.sub(SourceTopics=[""]))
    t.join_streams("m", t.sub(StateChangelogTopics=[{**t.topic_info("x"), "Name": "__consumer_offsets"}]))
    t.join_streams("m", t.sub(RepartitionSourceTopics=[{**t.topic_info("x"), "Name": "a/b"}]))
    t.join_streams("m", t.sub(RepartitionSinkTopics=["a/b"]))
    t.join_streams("m", t.sub(repartitions=("r",)))
    t.join_streams("m", t.sub("0", "", repartitions=("r",), sinks=("r",)))
    t.join_streams("m", t.sub("0", sinks=("s",)))
    t.join_streams("n", t.sub("0", ""))
    t.describe_streams()


@story
def no_subtopologies(t: StreamsTranscript) -> None:
    t.join_streams("m", Topology={"Epoch": 0, "Subtopologies": []})
    t.describe_streams()
    t.stream("m")


@story
def a_source_topic_is_missing(t: StreamsTranscript) -> None:
    t.join_streams("m", t.sub("0", "tv"), t.sub("1", "u"))
    t.describe_streams()
    t.stream("m")
    t.create_topic("v", 2)
    t.stream_until("m")
    t.describe_streams()
    t.delete_topic("u")
    t.stream_until("m", lambda answer: bool(answer["Status"]))
    t.describe_streams()


@story
def internal_topics_are_made(t: StreamsTranscript) -> None:
    t.join_streams(
        "m",
        t.sub("0", "t", sinks=("r",)),
        t.sub("1", "", repartitions=("r", ("fixed", 3)), changelogs=("store",)),
        t.sub("2", "u", changelogs=("other",)),
    )
    t.describe_streams()
    t.stream_until("m")
    t.describe_streams()
    t.topics_made("r", "fixed", "store", "other")


@story
def an_internal_topic_cannot_be_made(t: StreamsTranscript) -> None:
    wrong = {**t.topic_info("store"), "TopicConfigs": [{"Key": "cleanup.policy", "Value": "nonsense"}]}
    t.join_streams("m", t.sub(StateChangelogTopics=[wrong]))
    t.stream_until("m", lambda answer: "nonsense" in str(answer["Status"]))
    t.describe_streams()


@story
def a_repartition_topic_is_named_among_the_sources(t: StreamsTranscript) -> None:
    t.join_streams(
        "m",
        t.sub("0", "t", sinks=("a",)),
        t.sub("1", "a", repartitions=("a",)),
    )
    t.describe_streams()


@story
def repartition_topics_follow_their_sources(t: StreamsTranscript) -> None:
    t.join_streams(
        "m",
        t.sub("0", "tu", sinks=("a",)),
        t.sub("1", "", repartitions=("a",), sinks=("b",)),
        t.sub("2", "", repartitions=("b",), changelogs=("c",)),
    )
    t.stream_until("m")
    t.topics_made("a", "b", "c")


@story
def copartitioned_topics(t: StreamsTranscript) -> None:
    together = {"SourceTopics": [0], "RepartitionSourceTopics": [0]}
    t.join_streams(
        "m",
        t.sub("0", "u", sinks=("r",)),
        t.sub("1", "t", repartitions=("r",), changelogs=("c",), copartitioned=(together,)),
    )
    t.stream_until("m")
    t.topics_made("r", "c")


@story
def copartitioned_repartition_topics(t: StreamsTranscript) -> None:
    t.join_streams(
        "m",
        t.sub("0", "u", sinks=("r",)),
        t.sub("1", "t", sinks=("s",)),
        t.sub("2", "", repartitions=("r", "s"), copartitioned=({"RepartitionSourceTopics": [0, 1]},)),
    )
    t.stream_until("m")
    t.topics_made("r", "s")


@story
def one_of_two_copartitioned_repartition_topics_has_a_width(t: StreamsTranscript) -> None:
    t.join_streams(
        "m",
        t.sub("0", "t", sinks=("s",)),
        t.sub("1", "", repartitions=(("r", 3), "s"), copartitioned=({"RepartitionSourceTopics": [0, 1]},)),
    )
    t.stream_until("m")
    t.topics_made("r", "s")


@story
def sources_are_not_copartitioned(t: StreamsTranscript) -> None:
    t.join_streams("m", t.sub("0", "tu", copartitioned=({"SourceTopics": [0, 1]},)))
    t.describe_streams()
    t.stream("m")


@story
def a_repartition_topic_of_a_width_that_does_not_fit(t: StreamsTranscript) -> None:
    together = {"SourceTopics": [0], "RepartitionSourceTopics": [0]}
    t.join_streams("m", t.sub("0", "t", repartitions=(("r", 3),), copartitioned=(together,)))


@story
def repartition_topics_of_two_widths(t: StreamsTranscript) -> None:
    together = {"RepartitionSourceTopics": [0, 1]}
    t.join_streams("m", t.sub("0", "", repartitions=(("r", 3), ("s", 2)), copartitioned=(together,)))


@story
def an_internal_topic_has_another_width(t: StreamsTranscript) -> None:
    t.create_topic("c", 3)
    t.wait_until_coordinator_sees("c")
    t.join_streams("m", t.sub("0", "t", changelogs=("c", "d")))
    t.describe_streams()


@story
def a_source_topic_grows(t: StreamsTranscript) -> None:
    t.join_streams("m", t.sub("0", "u"))
    t.grow_topic("u", 5)
    t.stream_until("m", lambda answer: answer["ActiveTasks"] is not None)
    t.describe_streams()


@story
def a_source_topic_grows_past_its_changelog(t: StreamsTranscript) -> None:
    t.join_streams("m", t.sub("0", "u", changelogs=("c",)))
    t.stream_until("m")
    t.grow_topic("u", 5)
    t.stream_until("m", lambda answer: bool(answer["Status"]))
    t.describe_streams()


@story
def two_members_share(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.join_streams("n")
    t.describe_streams()
    held = active(t.stream("m"))
    t.describe_streams()
    t.stream("n")
    t.stream("m", tasks={"0": [0, 1, 2, 3]})
    t.stream("m", tasks=held)
    t.stream("n")
    t.describe_streams()
    t.stream("n", -1)
    t.stream("m", tasks=held)
    t.describe_streams()


@story
def the_target_changes_while_a_member_gives_up(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.join_streams("n")
    held = active(t.stream("m"))
    t.join_streams("o")
    t.join_streams("p")
    held = active(t.stream("m", tasks=held))
    t.describe_streams()
    t.stream("n")
    t.stream("m", tasks=held)
    t.counts_tasks = True
    t.stream("n")
    t.stream("o")
    t.stream("p")
    t.describe_streams()


@story
def wrong_epochs(t: StreamsTranscript) -> None:
    two_members(t)
    t.stream("nobody", 1)
    t.stream("nobody", -1)
    t.stream("m", 99)
    t.stream("m", t.epoch_of("m") - 1, tasks={})
    t.stream("m", t.epoch_of("m") - 1)
    t.stream("m", t.epoch_of("m") - 1, tasks={"0": [0, 1, 2, 3]})
    t.stream("n", 1, tasks={})
    t.join_streams("m")
    t.stream("m")


@story
def tasks_that_do_not_exist(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.stream("m", tasks={"9": [0]})
    t.stream("m", tasks={"0": [4]})
    t.stream("m", tasks={"0": [-1]})
    t.stream("m", standby={"9": [0]})
    t.stream("m", tasks={}, WarmupTasks=[{"SubtopologyId": "9", "Partitions": [0]}])
    t.stream("m", ActiveTasks=[])
    t.stream("m", tasks={})


@story
def a_member_says_other_things_of_itself(t: StreamsTranscript) -> None:
    t.join_streams("m", ClientTags=[{"Key": "zone", "Value": "a"}], RackId="r")
    t.stream("m", ClientTags=[{"Key": "zone", "Value": "b"}])
    t.stream("m", ProcessId="another")
    t.stream("m", RackId="s")
    t.stream("m", RebalanceTimeoutMs=10_000)
    t.stream("m", RebalanceTimeoutMs=10_000, ProcessId="another", RackId="s")
    t.stream("m", UserEndpoint={"Host": "here", "Port": 80})
    t.stream("m", TaskOffsets=[{"SubtopologyId": "0", "Partition": 0, "Offset": 1}])
    t.stream("m", TaskEndOffsets=[{"SubtopologyId": "0", "Partition": 0, "Offset": 1}])
    t.describe_streams()


@story
def another_topology(t: StreamsTranscript) -> None:
    t.join_streams("m", topology_epoch=3)
    t.join_streams("n", t.sub("0", "u"), topology_epoch=3)
    t.join_streams("n", t.sub("0", "t"), topology_epoch=4)
    t.join_streams("n", t.sub("0", "u"), topology_epoch=4)
    t.join_streams("n", t.sub("0", "u"), topology_epoch=2)
    t.stream("n")
    t.describe_streams()
    t.stream("m", -1)
    t.stream("n", -1)
    t.join_streams("n", t.sub("0", "u"), topology_epoch=4)
    t.describe_streams()


@story
def a_shutdown_is_asked_for(t: StreamsTranscript) -> None:
    two_members(t)
    t.stream("m", ShutdownApplication=True)
    t.stream("n")
    t.join_streams("o")
    t.stream("m", -1)
    t.stream("n")
    t.stream("n", -1)
    t.stream("o", -1)
    t.join_streams("m")


@story
def a_shutdown_is_asked_for_with_the_leave(t: StreamsTranscript) -> None:
    two_members(t)
    t.stream("m", -1, ShutdownApplication=True)
    t.stream("n")


@story
def endpoints(t: StreamsTranscript) -> None:
    t.join_streams("m", t.sub("0", "t"), t.sub("1", "u"), UserEndpoint={"Host": "one", "Port": 1})
    t.stream("m", EndpointInformationEpoch=0)
    t.stream("m", EndpointInformationEpoch=5)
    t.join_streams("n", t.sub("0", "t"), t.sub("1", "u"), UserEndpoint={"Host": "two", "Port": 2})
    held = active(t.stream("m", EndpointInformationEpoch=1))
    t.stream("m", tasks=held, EndpointInformationEpoch=1)
    t.stream("n", EndpointInformationEpoch=1)
    t.stream("m", EndpointInformationEpoch=1)
    t.stream("n", -1)
    t.stream("m", EndpointInformationEpoch=3)


@story
def a_wide_and_a_narrow_source_at_one_endpoint(t: StreamsTranscript) -> None:
    t.join_streams("m", t.sub("0", "tu"), UserEndpoint={"Host": "one", "Port": 1})


@story
def standbys(t: StreamsTranscript) -> None:
    t.set_group_config("streams.num.standby.replicas", "1")
    subs = t.sub("0", "u", changelogs=("c",)), t.sub("1", "u")
    t.join_streams("m", *subs)
    t.stream_until("m")
    t.describe_streams()
    t.join_streams("n", *subs)
    answer = t.stream("m")
    held, copies = (
        active(answer),
        {each["SubtopologyId"]: each["Partitions"] for each in answer["StandbyTasks"]},
    )
    t.stream("m", tasks=held, standby=copies)
    t.stream("n")
    t.stream("m")
    t.describe_streams()


@story
def standbys_of_one_process(t: StreamsTranscript) -> None:
    t.counts_tasks = True
    t.set_group_config("streams.num.standby.replicas", "2")
    sub = t.sub("0", "u", changelogs=("c",))
    t.join_streams("m", sub, ProcessId="one")
    t.stream_until("m")
    t.join_streams("n", sub, ProcessId="one")
    t.stream("m", tasks={"0": [0]})
    t.stream("n")
    t.describe_streams()


@story
def more_standbys_by_config(t: StreamsTranscript) -> None:
    t.counts_tasks = True
    sub = t.sub("0", "u", changelogs=("c",))
    t.join_streams("m", sub)
    t.stream_until("m")
    t.join_streams("n", sub)
    t.stream("m", tasks={"0": [0]})
    t.stream("n")
    t.set_group_config("streams.num.standby.replicas", "1")
    t.stream("m")
    t.stream("n")
    t.describe_streams()


@story
def the_first_assignment_is_delayed(t: StreamsTranscript) -> None:
    t.counts_tasks = True
    t.set_group_config("streams.initial.rebalance.delay.ms", "2000")
    t.join_streams("m")
    t.join_streams("n")
    t.describe_streams()
    t.stream("m")
    t.stream_until("m", lambda answer: bool(answer["ActiveTasks"]))
    t.stream("n")
    t.describe_streams()


@story
def later_assignments_are_delayed(t: StreamsTranscript) -> None:
    t.set_group_config("streams.assignment.interval.ms", "15000")
    t.join_streams("m")
    t.join_streams("n")
    t.describe_streams()
    t.stream("m")
    t.stream("n")
    t.stream("n", -1)
    t.describe_streams()


@story
def commits_and_fetches_by_epoch(t: StreamsTranscript) -> None:
    two_members(t)
    topics: list[dict[str, Any]] = [
        {
            "Name": t.name_of("t"),
            "Partitions": [
                {"PartitionIndex": partition, "CommittedOffset": 5, "CommittedMetadata": ""}
                for partition in (0, 1)
            ],
        }
    ]
    m, n = t.epoch_of("m"), t.epoch_of("n")
    for member, epoch in (
        ("", -1),
        ("nobody", 1),
        ("m", m),
        ("m", m - 1),
        ("m", 0),
        ("m", -1),
        ("m", m + 1),
        ("n", n),
        ("n", n - 1),
        ("n", 0),
    ):
        t.commit(member or "admin", MemberId=member, GenerationIdOrMemberEpoch=epoch, Topics=topics)
    others = [{**topics[0], "Name": t.name_of("u")}]
    t.commit("m", MemberId="m", GenerationIdOrMemberEpoch=m, Topics=others)
    t.commit("m", MemberId="m", GenerationIdOrMemberEpoch=m - 1, Topics=others)
    t.commit("m", version=8, MemberId="m", GenerationIdOrMemberEpoch=m, Topics=topics)
    fetched = [{"Name": t.name_of("t"), "PartitionIndexes": [0, 1, 2, 3]}]
    for asker, epoch in ((None, -1), ("m", m), ("m", m - 1), ("m", m + 1), ("nobody", 1), ("m", -1)):
        t.fetch(MemberId=asker, MemberEpoch=epoch, Topics=fetched)
    partitions = [{"PartitionIndex": 0}]
    both = [{"Name": t.name_of(each), "Partitions": partitions} for each in "tu"]
    t.ask("admin", "OffsetDelete", 0, GroupId=t.group, Topics=both)
    t.stream("m", -1)
    t.stream("n", -1)
    t.commit(MemberId="", GenerationIdOrMemberEpoch=-1, Topics=topics)
    t.ask("admin", "OffsetDelete", 0, GroupId=t.group, Topics=both)
    t.fetch(Topics=fetched)


@story
def commits_in_transactions(t: StreamsTranscript) -> None:
    two_members(t)
    m = t.epoch_of("m")
    t.ask("txn", "FindCoordinator", 3, Key=t.group, KeyType=1)
    t.forget_last()
    topics = [
        {
            "Name": t.name_of("t"),
            "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 5, "CommittedMetadata": ""}],
        }
    ]
    for member, epoch in (("", -1), ("nobody", 1), ("m", m), ("m", m - 1), ("m", m + 1)):
        told = len(t.lines)
        producer = eventually(
            lambda: t.ask("txn", "InitProducerId", 4, TransactionalId=t.group, TransactionTimeoutMs=60_000),
            lambda made: made["ErrorCode"] == 0,
        )
        del t.lines[told:]
        ids = {"ProducerId": producer["ProducerId"], "ProducerEpoch": producer["ProducerEpoch"]}
        t.ask("txn", "AddOffsetsToTxn", 3, TransactionalId=t.group, GroupId=t.group, **ids)
        t.ask(
            "txn",
            "TxnOffsetCommit",
            3,
            TransactionalId=t.group,
            GroupId=t.group,
            GenerationId=epoch,
            MemberId=member,
            Topics=topics,
            **ids,
        )
        t.ask("txn", "EndTxn", 3, TransactionalId=t.group, Committed=False, **ids)


@story
def administration(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=[])
    t.ask("admin", "ListGroups", 5, StatesFilter=["stable"], TypesFilter=["Streams"])
    t.ask("admin", "ListGroups", 5, StatesFilter=["notready"], TypesFilter=[])
    t.ask("admin", "ListGroups", 5, StatesFilter=[], TypesFilter=["classic"])
    t.ask("admin", "ListGroups", 3)
    t.describe(version=5)
    t.describe()
    t.describe_consumer()
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.describe_streams(IncludeAuthorizedOperations=True)
    t.describe_streams(GroupIds=[t.group, "nobody", t.group])
    t.stream("m", -1)
    t.ask("admin", "DeleteGroups", 2, GroupsNames=[t.group])
    t.describe_streams()


@story
def other_protocols_meet_a_streams_group(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.join_consumer("c", "t")
    t.beat("c", 1)
    t.join("k")
    t.join("k", member_id="m", ProtocolType="streams")
    t.sync("k", "m", 2)
    t.heartbeat("k", "m", 2)
    t.leave("k", {"MemberId": "m", "GroupInstanceId": None})
    t.stream("m", -1)
    t.join("k")
    t.join_consumer("c", "t")
    t.describe_streams()


@story
def an_empty_streams_group_is_joined_by_the_classic_protocol(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.stream("m", -1)
    t.join("k")
    t.describe_streams()
    t.describe()


@story
def a_streams_member_meets_a_classic_group(t: StreamsTranscript) -> None:
    t.settled_member()
    t.join_streams("m")
    t.stream("m", 1)
    t.stream("m", -1)
    t.describe_streams()


@story
def a_streams_member_meets_a_consumer_group(t: StreamsTranscript) -> None:
    t.join_consumer("c", "t")
    t.join_streams("m")
    t.stream("m", 1)
    t.beat("c", -1)
    t.join_streams("m")
    t.describe_streams()


@story
def a_consumer_meets_an_empty_streams_group(t: StreamsTranscript) -> None:
    t.join_streams("m")
    t.stream("m", -1)
    t.join_consumer("c", "t")
    t.describe_streams()


@story
def a_streams_member_comes_to_a_group_of_offsets(t: StreamsTranscript) -> None:
    topics = [
        {
            "Name": t.name_of("t"),
            "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 5, "CommittedMetadata": ""}],
        }
    ]
    t.commit(MemberId="", GenerationIdOrMemberEpoch=-1, Topics=topics)
    t.join_streams("m")
    t.describe_streams()
    t.fetch(Topics=[{"Name": t.name_of("t"), "PartitionIndexes": [0]}])


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_both_brokers_tell_the_same_story(tell: Story, unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("streams")
    pair.same(lambda side: told_to(side.server.bootstrap, tell, name))
