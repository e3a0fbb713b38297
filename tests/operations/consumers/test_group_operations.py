"""Groups as administrators see and change them, without Kafka's protocol."""

from __future__ import annotations

from typing import Any

import pytest

from kbroker.coordinators.groups.classic.protocol import JoinRequest, SyncRequest
from kbroker.coordinators.groups.errors import GroupIdNotFound, GroupSubscribedToTopic, NonEmptyGroup
from kbroker.operations.consumers.consumer import Consumer
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_lag import group_lag
from kbroker.operations.group_offsets import (
    NewOffset,
    TopicPartition,
    commit_offsets,
    committed_offsets,
    delete_offsets,
)
from kbroker.operations.group_reset import ResetOffset, ResetTo, reset_offsets
from kbroker.operations.groups import delete_group, describe_group, list_groups
from kbroker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    write,
)
from kbroker.protocol.consumer_protocol import TopicPartition as Assigned
from kbroker.protocol.errors import ApiError, ErrorCode
from tests.support.timed_cluster import TimedCluster


def run(cluster: TimedCluster, steps: Any) -> Any:
    return cluster.result(cluster.broker.long_requests.run(steps))


def reading(cluster: TimedCluster, group: str = "g") -> Consumer:
    settings = ConsumerSettings(auto_offset_reset=OffsetReset.EARLIEST, client_id="me", client_host="/here")
    consumer = cluster.broker.consumers.open(cluster.resources(), group, settings)
    consumer.subscribe(cluster.resources(), ["t"])
    cluster.result(consumer.assigned(max_wait_ms=1000))
    return consumer


def committed(cluster: TimedCluster, group: str = "g", **offsets: int) -> None:
    new = [NewOffset("t", int(name[1:]), offset) for name, offset in offsets.items()]
    now_ms = cluster.scheduler.now_ms
    assert cluster.result(commit_offsets(cluster.resources(), group, new, now_ms=now_ms)) == {}


def classic_member(cluster: TimedCluster, group: str) -> str:
    """Of a group of one: joined, and given both partitions of t."""
    now_ms = cluster.scheduler.now_ms
    subscription = write(ConsumerProtocolSubscription(["t"]), 1)
    request = JoinRequest(
        group, "", None, "old", "/there", 10_000, 10_000, "consumer", (("range", subscription),),
        member_id_required=False,
    )  # fmt: skip
    joined = cluster.result(cluster.broker.groups.join_group(request, now_ms))
    assignment = write(ConsumerProtocolAssignment([Assigned("t", [0, 1])]), 1)
    sync = SyncRequest(
        group, joined.member_id, None, joined.generation_id, "consumer", "range",
        {joined.member_id: assignment},
    )  # fmt: skip
    cluster.result(cluster.broker.groups.sync_group(sync, now_ms))
    return joined.member_id


def test_groups_are_listed_page_by_page(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    for group in ("c", "a", "b", "other"):
        committed(cluster, group, p0=1)
    reading(cluster, "live")
    page = list_groups(cluster.resources(), limit=2)
    assert [group.group_id for group in page.groups] == ["a", "b"]
    assert page.more
    page = list_groups(cluster.resources(), limit=2, after="b")
    assert [group.group_id for group in page.groups] == ["c", "live"]
    assert [g.group_id for g in list_groups(cluster.resources(), limit=9, prefix="o").groups] == ["other"]
    assert [g.group_id for g in list_groups(cluster.resources(), limit=9, types=["consumer"]).groups] == [
        "live"
    ]


def test_a_consumer_group_is_described_with_its_members(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    reading(cluster)
    group = run(cluster, describe_group(cluster.resources(), "g"))
    assert (group.type, group.state, group.assignor) == ("consumer", "Stable", "uniform")
    (member,) = group.members
    assert (member.client_id, member.client_host, member.protocol) == ("me", "/here", "consumer")
    assert member.topics == ("t",)
    assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))


def test_a_classic_group_is_described_as_far_as_its_members_say(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    member_id = classic_member(cluster, "old")
    group = run(cluster, describe_group(cluster.resources(), "old"))
    assert (group.type, group.state, group.assignor, group.epoch) == ("classic", "Stable", "range", 1)
    (member,) = group.members
    assert (member.member_id, member.protocol, member.topics) == (member_id, "classic", ("t",))
    assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))


def test_a_classic_member_goes_on_beside_a_consumer_of_ours(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    member_id = classic_member(cluster, "mixed")
    settings = ConsumerSettings(auto_offset_reset=OffsetReset.EARLIEST)
    consumer = cluster.broker.consumers.open(cluster.resources(), "mixed", settings)
    consumer.subscribe(cluster.resources(), ["t"])
    cluster.scheduler.pass_ms(500)
    group = run(cluster, describe_group(cluster.resources(), "mixed"))
    assert group.type == "consumer"
    assert {member.member_id: member.protocol for member in group.members}[member_id] == "classic"
    assert len(group.members) == 2


def test_a_share_group_is_described(cluster: TimedCluster) -> None:
    cluster.result(cluster.broker.groups.share_groups.create_empty("s", cluster.scheduler.now_ms))
    group = run(cluster, describe_group(cluster.resources(), "s"))
    assert (group.type, group.state, group.members) == ("share", "Empty", [])


def test_a_group_that_is_not_there_is_not_found(cluster: TimedCluster) -> None:
    for steps in (
        describe_group(cluster.resources(), "g"),
        group_lag(cluster.resources(), "g"),
    ):
        with pytest.raises(GroupIdNotFound):
            run(cluster, steps)
    with pytest.raises(GroupIdNotFound):
        cluster.result(delete_group(cluster.resources(), "g", now_ms=cluster.scheduler.now_ms))


def test_lag_is_told_for_what_is_committed_and_what_is_assigned(cluster: TimedCluster) -> None:
    cluster.create("t", 3)
    for partition in range(3):
        cluster.produce("t", partition, *(b"x" for _ in range(10)))
    committed(cluster, p0=4, p1=10)
    lag = run(cluster, group_lag(cluster.resources(), "g"))
    assert [(p.partition, p.committed_offset, p.log_end_offset, p.lag) for p in lag.partitions] == [
        (0, 4, 10, 6),
        (1, 10, 10, 0),
    ]
    assert lag.total == 6
    assert lag.largest is lag.partitions[0]
    consumer = reading(cluster)
    lag = run(cluster, group_lag(cluster.resources(), "g"))
    assert [(p.partition, p.committed_offset, p.lag) for p in lag.partitions] == [
        (0, 4, 6),
        (1, 10, 0),
        (2, None, 10),
    ]
    assert all(p.member is not None and p.member.client_id == "me" for p in lag.partitions)
    cluster.result(consumer.close())


@pytest.mark.parametrize(
    ("to", "offsets"),
    [
        (ResetTo("earliest"), [2, 0]),
        (ResetTo("latest"), [10, 10]),
        (ResetTo("offset", 7), [7, 7]),
        (ResetTo("offset", 0), [2, 0]),
        (ResetTo("offset", 99), [10, 10]),
        (ResetTo("shift", -2), [4, 6]),
        (ResetTo("shift", 5), [10, 10]),
        (ResetTo("shift", -99), [2, 0]),
        (ResetTo("time", 1_700_000_000_005), [5, 5]),
        (ResetTo("time", 1_800_000_000_000), [10, 10]),
    ],
)
def test_offsets_of_an_empty_group_are_reset(cluster: TimedCluster, to: ResetTo, offsets: list[int]) -> None:
    cluster.create("t", 2)
    for _ in range(10):
        for partition in range(2):
            cluster.produce("t", partition, b"x")
        cluster.scheduler.pass_ms(1)
    cluster.result(cluster.broker.find_log("t", 0).delete_records_before(2))
    committed(cluster, p0=6, p1=8)
    now_ms = cluster.scheduler.now_ms
    wanted = [ResetOffset("t", 0, 6, offsets[0]), ResetOffset("t", 1, 8, offsets[1])]
    for dry_run in (True, False):
        assert (
            run(cluster, reset_offsets(cluster.resources(), "g", to, dry_run=dry_run, now_ms=now_ms))
            == wanted
        )
        found = cluster.result(committed_offsets(cluster.resources(), "g"))
        expected = [6, 8] if dry_run else offsets
        assert [found[TopicPartition("t", p)].offset for p in range(2)] == expected  # type: ignore[union-attr]


def test_a_group_that_never_was_gets_offsets_for_topics_that_are_named(cluster: TimedCluster) -> None:
    cluster.create("t", 1)
    cluster.produce("t", 0, b"x")
    now_ms = cluster.scheduler.now_ms
    with pytest.raises(ApiError, match="has read nothing"):
        run(cluster, reset_offsets(cluster.resources(), "new", ResetTo("latest"), now_ms=now_ms))
    changes = run(cluster, reset_offsets(cluster.resources(), "new", ResetTo("latest"), ["t"], now_ms=now_ms))
    assert changes == [ResetOffset("t", 0, None, 1)]


def test_a_group_with_members_is_neither_reset_nor_deleted(cluster: TimedCluster) -> None:
    cluster.create("t", 1)
    consumer = reading(cluster)
    now_ms = cluster.scheduler.now_ms
    with pytest.raises(NonEmptyGroup):
        run(cluster, reset_offsets(cluster.resources(), "g", ResetTo("latest"), ["t"], now_ms=now_ms))
    with pytest.raises(NonEmptyGroup):
        cluster.result(delete_group(cluster.resources(), "g", now_ms=now_ms))
    cluster.result(consumer.close())
    cluster.result(delete_group(cluster.resources(), "g", now_ms=now_ms))
    assert list_groups(cluster.resources(), limit=5).groups == []


def test_offsets_are_deleted_unless_the_group_reads_the_topic(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    committed(cluster, p0=1, p1=1)
    gone, missing = TopicPartition("t", 0), TopicPartition("nowhere", 0)
    refusals = cluster.result(delete_offsets(cluster.resources(), "g", [gone, missing]))
    assert list(refusals) == [missing]
    assert list(cluster.result(committed_offsets(cluster.resources(), "g"))) == [TopicPartition("t", 1)]
    reading(cluster)
    refusals = cluster.result(delete_offsets(cluster.resources(), "g", [TopicPartition("t", 1)]))
    assert isinstance(refusals[TopicPartition("t", 1)], GroupSubscribedToTopic)


def test_who_may_not_is_refused() -> None:
    cluster = TimedCluster({"authorizer.class.name": "kbroker", "super.users": "User:root"})
    resources = cluster.resources("nobody")
    cluster.create("t", 1)
    now_ms = cluster.scheduler.now_ms
    for refused in (
        lambda: commit_offsets(resources, "g", [NewOffset("t", 0, 1)], now_ms=now_ms),
        lambda: committed_offsets(resources, "g"),
        lambda: delete_offsets(resources, "g", []),
        lambda: run(cluster, describe_group(resources, "g")),
        lambda: run(cluster, group_lag(resources, "g")),
        lambda: run(cluster, reset_offsets(resources, "g", ResetTo("latest"), now_ms=now_ms)),
        lambda: cluster.result(delete_group(resources, "g", now_ms=now_ms)),
        lambda: cluster.broker.consumers.open(resources, "g", ConsumerSettings()),
    ):
        with pytest.raises(ApiError) as error:
            refused()
        assert error.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert list_groups(resources, limit=10).groups == []
    root = cluster.broker.consumers.open(cluster.resources("root"), "g", ConsumerSettings())
    with pytest.raises(ApiError):
        root.subscribe(resources, ["t"])
    root.subscribe(cluster.resources("root"), ["t"])
    assert cluster.result(root.assigned(max_wait_ms=1000)) == [TopicPartition("t", 0)]
    with pytest.raises(ApiError) as error:
        cluster.result(root.poll(resources, max_wait_ms=100))
    assert error.value.code in (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
    cluster.broker.close()
