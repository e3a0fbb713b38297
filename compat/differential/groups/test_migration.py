"""Groups that change their protocol with members in them: what both brokers answer, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.groups.transcript import (
    CONSUMER,
    Partitions,
    Story,
    Transcript,
    told_to,
)
from compat.differential.pair import Pair
from kbroker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write,
)

STORIES: list[Story] = []


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


def protocols(t: Transcript, *owned: int) -> list[dict[str, Any]]:
    """What a consumer sends in JoinGroup that owns these partitions of topic t."""
    subscription = ConsumerProtocolSubscription(
        topics=[t.name_of("t")], owned_partitions=[TopicPartition(t.name_of("t"), list(owned))]
    )
    metadata = write(subscription, 1)
    return [{"Name": "range", "Metadata": metadata}, {"Name": "cooperative-sticky", "Metadata": metadata}]


def assignment(t: Transcript, partitions: Partitions, user_data: bytes | None = None) -> bytes:
    topics = [TopicPartition(t.name_of(letter), held) for letter, held in partitions.items()]
    return write(ConsumerProtocolAssignment(topics, user_data), 1)


def classic_member(t: Transcript, user_data: bytes | None = None, **values: Any) -> str:
    """The only member of a stable classic group, with all partitions of topic t."""
    values = {"Protocols": protocols(t), **values}
    member = t.new_member("classic", **values)
    if "GroupInstanceId" not in values:
        t.join("classic", member_id=member, **values)
    partitions = assignment(t, {"t": [0, 1, 2, 3]}, user_data)
    instance = {"GroupInstanceId": values["GroupInstanceId"]} if "GroupInstanceId" in values else {}
    t.sync("classic", member, 1, Assignments=[{"MemberId": member, "Assignment": partitions}], **instance)
    return member


@story
def a_consumer_joins_a_classic_group(t: Transcript) -> None:
    member = classic_member(t)
    t.describe()
    t.join_consumer("c", "t")
    t.describe()
    t.describe_consumer()
    t.heartbeat("classic", member, 1)
    t.join("classic", member_id=member, Protocols=protocols(t, 0, 1, 2, 3))
    t.sync("classic", member, 1)
    t.heartbeat("classic", member, 1)
    t.join("classic", member_id=member, Protocols=protocols(t, 0, 1))
    t.sync("classic", member, 2)
    t.heartbeat("classic", member, 2)
    t.beat("c")
    t.describe_consumer()
    t.heartbeat("classic", member, 1)
    t.sync("classic", member, 1)
    t.sync("classic", member, 2, ProtocolName="cooperative-sticky")
    t.heartbeat("classic", "nobody", 2)
    t.heartbeat("classic", "c", 2)
    t.commit("classic", version=2, MemberId=member, GenerationIdOrMemberEpoch=2, Topics=committed(t))
    t.commit("classic", version=9, MemberId=member, GenerationIdOrMemberEpoch=3, Topics=committed(t))
    t.leave("classic", {"MemberId": member}, {"MemberId": "nobody"})
    t.beat("c", owned={"t": [2, 3]})
    t.describe_consumer()


def committed(t: Transcript) -> list[dict[str, Any]]:
    partitions = [{"PartitionIndex": 0, "CommittedOffset": 7, "CommittedMetadata": ""}]
    return [{"Name": t.name_of("t"), "Partitions": partitions}]


@story
def a_classic_member_joins_a_consumer_group(t: Transcript) -> None:
    t.join_consumer("c", "t")
    t.join("classic", member_id="", Protocols=protocols(t), version=3)
    member = str(t.lines[-1][1]["MemberId"])
    t.lines[-1][1]["MemberId"] = "member"
    assert member
    t.join("other", member_id="my-own-id", Protocols=protocols(t))
    t.describe_consumer()
    t.forget_last()
    t.join("other", member_id="x", ProtocolType="connect")
    t.join("other", member_id="x", Protocols=[{"Name": "unknown", "Metadata": protocols(t)[0]["Metadata"]}])
    t.beat("c", -1)


@story
def the_last_consumer_leaves(t: Transcript) -> None:
    member = classic_member(t)
    t.join_consumer("c", "t")
    t.join("classic", member_id=member, Protocols=protocols(t))
    t.sync("classic", member, 2)
    t.beat("c", -1)
    t.describe_consumer()
    t.describe()
    t.heartbeat("classic", member, 2)
    t.heartbeat("classic", member, 3)
    t.join("classic", member_id=member, Protocols=protocols(t))
    t.describe()


@story
def a_static_consumer_comes_back_as_a_classic_member(t: Transcript) -> None:
    t.join_consumer("c", "t", InstanceId="i")
    t.beat("c", -2, InstanceId="i")
    joined = t.join("classic", GroupInstanceId="i", Protocols=protocols(t))
    t.lines[-1][1].pop("MemberId")
    t.describe_consumer()
    t.sync("classic", joined["MemberId"], joined["GenerationId"], GroupInstanceId="i")
    t.heartbeat("classic", joined["MemberId"], joined["GenerationId"], GroupInstanceId="i")


@story
def a_static_classic_member_comes_back_as_a_consumer(t: Transcript) -> None:
    classic_member(t, GroupInstanceId="i")
    t.join_consumer("c", "t", InstanceId="i")
    t.describe_consumer()


@story
def groups_that_cannot_be_upgraded(t: Transcript) -> None:
    classic_member(t, user_data=b"of a custom assignor")
    t.join_consumer("c", "t")
    t.describe()


@story
def a_group_of_another_type_cannot_be_upgraded(t: Transcript) -> None:
    member = t.new_member("one", ProtocolType="connect")
    t.join("one", member_id=member, ProtocolType="connect")
    t.join_consumer("c", "t")


@story
def empty_groups_change_their_type(t: Transcript) -> None:
    member = classic_member(t)
    t.leave("classic", {"MemberId": member})
    t.join_consumer("c", "t")
    t.beat("c", -1)
    t.describe_consumer()
    classic_member(t)
    t.describe()


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_both_brokers_tell_the_same_story(tell: Story, unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("migration")
    pair.same(lambda side: told_to(side.server.bootstrap, tell, name, CONSUMER))
