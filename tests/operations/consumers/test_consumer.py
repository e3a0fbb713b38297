"""A consumer inside the broker: what it reads, in which order, and what it commits."""

from __future__ import annotations

import pytest

from kbroker.operations.consumers.consumer import Consumer
from kbroker.operations.consumers.errors import IllegalState, NoOffset, NotAssigned
from kbroker.operations.consumers.held import SeekTo
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_offsets import CommittedOffset, NewOffset, TopicPartition
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import compression
from tests.support.timed_cluster import TimedCluster

EARLIEST = OffsetReset.EARLIEST
BY_HAND = ConsumerSettings(auto_offset_reset=EARLIEST, auto_commit=False)
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def opened(
    cluster: TimedCluster,
    settings: ConsumerSettings = BY_HAND,
    group: str = "g",
    topics: tuple[str, ...] = ("t",),
) -> Consumer:
    consumer = cluster.broker.consumers.open(cluster.resources(), group, settings)
    if topics:
        consumer.subscribe(cluster.resources(), topics)
    return consumer


def polled(cluster: TimedCluster, consumer: Consumer, wait_ms: int = 0, **limits: int) -> list[bytes]:
    records = cluster.result(consumer.poll(cluster.resources(), max_wait_ms=wait_ms, **limits))
    return cluster.values(records)


def committed(cluster: TimedCluster, at: TopicPartition = P0, group: str = "g") -> int | None:
    found = cluster.result(cluster.broker.groups.offsets.fetch(group, [at]))[at]
    assert found is None or isinstance(found, CommittedOffset)
    return None if found is None else found.offset


def test_a_subscribed_consumer_gets_all_records_of_all_partitions(cluster: TimedCluster) -> None:
    cluster.create("t", 3)
    for partition in range(3):
        cluster.produce("t", partition, *(b"%d-%d" % (partition, n) for n in range(5)))
    consumer = opened(cluster)
    found = polled(cluster, consumer, 1000)
    assert sorted(found) == sorted(b"%d-%d" % (p, n) for p in range(3) for n in range(5))
    assert consumer.assignment == [TopicPartition("t", p) for p in range(3)]
    assert polled(cluster, consumer) == []


def test_a_poll_waits_for_a_record_that_comes_later(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = opened(cluster)
    assert polled(cluster, consumer) == []
    waiting = consumer.poll(cluster.resources(), max_wait_ms=5000)
    assert isinstance(waiting, Pending)
    cluster.scheduler.pass_ms(2000)
    assert not waiting.done
    cluster.produce("t", 0, b"late")
    assert cluster.values(cluster.result(waiting, 100)) == [b"late"]


def test_a_poll_ends_empty_after_its_wait(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = opened(cluster)
    waiting = consumer.poll(cluster.resources(), max_wait_ms=3000)
    assert isinstance(waiting, Pending)
    cluster.scheduler.pass_ms(2900)
    assert not waiting.done
    cluster.scheduler.pass_ms(200)
    assert waiting.result() == []


def test_a_newer_poll_ends_the_one_that_waits_and_gets_the_records(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = opened(cluster)
    first = consumer.poll(cluster.resources(), max_wait_ms=5000)
    second = consumer.poll(cluster.resources(), max_wait_ms=5000)
    cluster.scheduler.pass_ms(100)
    assert isinstance(first, Pending)
    assert first.result() == []
    cluster.produce("t", 0, b"x")
    assert cluster.values(cluster.result(second)) == [b"x"]


def test_a_poll_that_is_abandoned_loses_nothing(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = opened(cluster)
    waiting = consumer.poll(cluster.resources(), max_wait_ms=5000)
    cluster.scheduler.pass_ms(500)
    assert isinstance(waiting, Pending)
    waiting.abandon()
    cluster.produce("t", 0, b"x")
    cluster.scheduler.pass_ms(500)
    assert polled(cluster, consumer) == [b"x"]


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP, compression.ZSTD])
def test_a_poll_takes_so_many_records_and_the_next_goes_on_within_the_batch(
    cluster: TimedCluster, codec: int
) -> None:
    cluster.create("t")
    cluster.produce("t", 0, *(b"%d" % n for n in range(10)), codec=codec)
    consumer = opened(cluster)
    taken = [polled(cluster, consumer, 1000, max_records=4) for _ in range(4)]
    assert [len(each) for each in taken] == [4, 4, 2, 0]
    assert [value for each in taken for value in each] == [b"%d" % n for n in range(10)]


def test_a_poll_takes_so_many_bytes_and_always_one_record(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, *(b"x" * 100 for _ in range(5)))
    consumer = opened(cluster)
    assert len(polled(cluster, consumer, 1000, max_bytes=250)) == 2
    assert len(polled(cluster, consumer, 1000, max_bytes=1)) == 1
    assert len(polled(cluster, consumer, 1000)) == 2


def test_partitions_take_turns(cluster: TimedCluster) -> None:
    cluster.create("t", 3)
    for partition in range(3):
        for _ in range(4):
            cluster.produce("t", partition, b"%d" % partition)
    consumer = opened(cluster)
    first = [polled(cluster, consumer, 1000, max_records=1)[0] for _ in range(6)]
    assert sorted(first[:3]) == [b"0", b"1", b"2"]
    assert first[3:] == first[:3]


def test_control_records_and_aborted_ones_are_left_out_of_committed_reads(cluster: TimedCluster) -> None:
    cluster.create("t")
    transaction = {"transactional": True, "producer_id": 7, "producer_epoch": 0}
    cluster.produce("t", 0, b"aborted", base_sequence=0, **transaction)
    cluster.end_transaction("t", 0, 7, commit=False)
    cluster.produce("t", 0, b"committed", base_sequence=1, **transaction)
    cluster.end_transaction("t", 0, 7, commit=True)
    cluster.produce("t", 0, b"open", base_sequence=2, **transaction)
    stable = opened(cluster, ConsumerSettings(auto_offset_reset=EARLIEST, read_committed=True))
    assert polled(cluster, stable, 500) == [b"committed"]
    assert polled(cluster, stable, 100) == []
    unstable = opened(cluster, BY_HAND, "other")
    assert polled(cluster, unstable, 500) == [b"aborted", b"committed", b"open"]


def test_without_a_committed_offset_it_begins_where_auto_offset_reset_says(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"old")
    latest = opened(cluster, ConsumerSettings(auto_offset_reset=OffsetReset.LATEST), "l")
    assert polled(cluster, latest, 200) == []
    cluster.produce("t", 0, b"new")
    assert polled(cluster, latest, 200) == [b"new"]
    none = opened(cluster, ConsumerSettings(auto_offset_reset=OffsetReset.NONE), "n")
    with pytest.raises(NoOffset):
        polled(cluster, none, 200)
    none.seek(P0, 1)
    assert polled(cluster, none, 200) == [b"new"]


def test_an_offset_that_the_log_has_no_more_is_reset(cluster: TimedCluster) -> None:
    cluster.create("t")
    for number in range(5):
        cluster.produce("t", 0, b"%d" % number)
    consumer = opened(cluster)
    assert len(polled(cluster, consumer, 200, max_records=1)) == 1
    cluster.result(cluster.broker.find_log("t", 0).delete_records_before(3))
    assert polled(cluster, consumer, 500) == [b"3", b"4"]


def test_commits_are_where_the_next_consumer_of_the_group_goes_on(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1", b"2", b"3")
    consumer = opened(cluster)
    assert polled(cluster, consumer, 200, max_records=3) == [b"0", b"1", b"2"]
    assert committed(cluster) is None
    assert cluster.result(consumer.commit(cluster.resources(), [NewOffset("t", 0, 1, metadata="one")])) == {}
    assert committed(cluster) == 1
    assert cluster.result(consumer.commit(cluster.resources())) == {}
    assert committed(cluster) == 3
    cluster.result(consumer.close())
    assert polled(cluster, opened(cluster), 200) == [b"3"]


def test_auto_commit_commits_what_a_later_poll_shows_to_be_done(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1", b"2", b"3")
    settings = ConsumerSettings(auto_offset_reset=EARLIEST, auto_commit_interval_ms=1000)
    consumer = opened(cluster, settings)
    polled(cluster, consumer, 200, max_records=2)
    cluster.scheduler.pass_ms(1500)
    assert committed(cluster) is None, "nobody knows whether they are done"
    polled(cluster, consumer, 200, max_records=1)
    cluster.scheduler.pass_ms(10)
    assert committed(cluster) == 2
    cluster.result(consumer.close())
    assert committed(cluster) == 3, "who closes it is done with all that it got"


def test_an_expired_consumer_does_not_commit_what_its_user_got_last(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1", b"2", b"3")
    consumer = opened(cluster, ConsumerSettings(auto_offset_reset=EARLIEST, idle_ms=60_000))
    polled(cluster, consumer, 200, max_records=2)
    polled(cluster, consumer, 200, max_records=1)
    cluster.scheduler.pass_ms(61_000)
    assert consumer.closed
    assert committed(cluster) == 2
    assert cluster.broker.groups.groups["g"].is_empty


def test_a_commit_in_the_middle_is_not_taken_back_by_auto_commit(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1", b"2", b"3")
    settings = ConsumerSettings(auto_offset_reset=EARLIEST, idle_ms=60_000)
    consumer = opened(cluster, settings)
    polled(cluster, consumer, 200, max_records=1)
    polled(cluster, consumer, 200, max_records=3)
    assert cluster.result(consumer.commit(cluster.resources(), [NewOffset("t", 0, 3)])) == {}
    cluster.scheduler.pass_ms(61_000)
    assert consumer.closed
    assert committed(cluster) == 3


def test_who_takes_records_one_by_one_says_how_far_it_is(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1", b"2", b"3")
    settings = ConsumerSettings(auto_offset_reset=EARLIEST, auto_commit_interval_ms=1000)
    consumer = opened(cluster, settings)
    assert len(polled(cluster, consumer, 200)) == 4
    cluster.scheduler.pass_ms(1500)
    consumer.through_with({P0: 2, P1: 7})
    cluster.scheduler.pass_ms(10)
    assert committed(cluster) == 2
    consumer.through_with({P0: 1})
    cluster.result(consumer.expire())
    assert committed(cluster) == 2, "nobody goes back"


def test_what_is_handed_back_comes_again(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1", b"2", b"3")
    consumer = opened(cluster)
    assert len(polled(cluster, consumer, 200)) == 4
    consumer.hand_back({P0: 2, P1: 0})
    consumer.hand_back({P0: 0})
    assert polled(cluster, consumer, 200) == [b"2", b"3"]
    consumer.hand_back({P0: 9})
    assert polled(cluster, consumer, 200) == []


def test_seeks_move_the_next_poll(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, *(b"%d" % n for n in range(5)))
    consumer = opened(cluster)
    assert len(polled(cluster, consumer, 200)) == 5
    consumer.seek(P0, 3)
    assert cluster.result(consumer.position(cluster.resources(), P0)) == 3
    assert polled(cluster, consumer, 200) == [b"3", b"4"]
    consumer.seek_to([P0], SeekTo.BEGINNING)
    assert cluster.result(consumer.position(cluster.resources(), P0)) == 0
    consumer.seek_to([P0], SeekTo.END)
    assert cluster.result(consumer.position(cluster.resources(), P0)) == 5
    assert polled(cluster, consumer, 200) == []
    with pytest.raises(NotAssigned):
        consumer.seek(P1, 0)


def test_a_seek_ends_what_a_poll_waits_for_and_is_not_undone_by_it(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"0", b"1")
    consumer = opened(cluster)
    polled(cluster, consumer, 200)
    waiting = consumer.poll(cluster.resources(), max_wait_ms=5000)
    consumer.seek(P0, 1)
    assert cluster.values(cluster.result(waiting, 100)) == [b"1"]


def test_paused_partitions_are_not_read(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    cluster.produce("t", 0, b"0")
    cluster.produce("t", 1, b"1")
    consumer = opened(cluster)
    cluster.result(consumer.assigned(max_wait_ms=1000))
    consumer.pause([P0])
    assert polled(cluster, consumer, 200) == [b"1"]
    consumer.resume([P0])
    assert polled(cluster, consumer, 200) == [b"0"]


def test_partitions_assigned_by_hand_need_no_membership_and_commit_to_the_group(
    cluster: TimedCluster,
) -> None:
    cluster.create("t", 2)
    cluster.produce("t", 0, b"0")
    cluster.produce("t", 1, b"1")
    consumer = opened(cluster, topics=())
    with pytest.raises(IllegalState):
        consumer.poll(cluster.resources())
    consumer.assign(cluster.resources(), [P1])
    assert polled(cluster, consumer) == [b"1"]
    assert cluster.result(consumer.commit(cluster.resources())) == {}
    assert committed(cluster, P1) == 1
    with pytest.raises(IllegalState):
        consumer.subscribe(cluster.resources(), ["t"])
    assert cluster.broker.groups.groups["g"].is_empty


def test_a_pattern_subscribes_to_topics_that_come_later(cluster: TimedCluster) -> None:
    consumer = opened(cluster, topics=())
    consumer.subscribe(cluster.resources(), pattern="orders-.*")
    waiting = consumer.poll(cluster.resources(), max_wait_ms=20_000)
    cluster.create("orders-eu")
    cluster.produce("orders-eu", 0, b"x")
    cluster.create("other")
    assert cluster.values(cluster.result(waiting, 20_000)) == [b"x"]


def test_a_pattern_leaves_internal_topics_out(cluster: TimedCluster) -> None:
    _ = cluster.broker.groups
    assert cluster.broker.topics.get("__consumer_offsets") is not None
    cluster.create("orders")
    cluster.produce("orders", 0, b"x")
    consumer = opened(cluster, topics=())
    consumer.subscribe(cluster.resources(), pattern=".*")
    assert b"x" in polled(cluster, consumer)
    assert not [partition for partition in consumer.assignment if partition.topic.startswith("__")]


def test_a_pattern_that_cannot_be_read_is_told_by_the_next_call(cluster: TimedCluster) -> None:
    consumer = opened(cluster, topics=())
    consumer.subscribe(cluster.resources(), pattern="(")
    with pytest.raises(Exception, match="cannot be read"):
        polled(cluster, consumer, 100)
    cluster.create("t")
    cluster.produce("t", 0, b"x")
    consumer.subscribe(cluster.resources(), ["t"])
    assert polled(cluster, consumer, 200) == [b"x"]


def test_a_topic_that_is_deleted_and_made_anew_is_read_from_its_start(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"old", b"old")
    consumer = opened(cluster)
    assert len(polled(cluster, consumer, 200)) == 2
    topic = cluster.broker.topics.get("t")
    assert topic is not None
    cluster.result(cluster.broker.topics.delete(topic))
    assert polled(cluster, consumer, 1000) == []
    cluster.create("t")
    cluster.produce("t", 0, b"new")
    assert polled(cluster, consumer, 20_000) == [b"new"]


def test_unsubscribing_leaves_the_group(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = opened(cluster)
    cluster.result(consumer.assigned(max_wait_ms=1000))
    cluster.result(consumer.unsubscribe())
    assert consumer.assignment == []
    assert cluster.broker.groups.groups["g"].is_empty
    consumer.subscribe(cluster.resources(), ["t"])
    assert cluster.result(consumer.assigned(max_wait_ms=1000)) == [P0]


def test_a_share_group_cannot_be_joined(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.result(cluster.broker.groups.share_groups.create_empty("g", cluster.scheduler.now_ms))
    consumer = opened(cluster)
    with pytest.raises(Exception, match="does not use the consumer protocol"):
        polled(cluster, consumer, 200)


def test_a_commit_by_hand_is_refused_while_the_group_has_members(cluster: TimedCluster) -> None:
    cluster.create("t")
    member = opened(cluster)
    cluster.result(member.assigned(max_wait_ms=1000))
    outsider = opened(cluster, topics=())
    outsider.assign(cluster.resources(), [P0])
    refusals = cluster.result(outsider.commit(cluster.resources(), [NewOffset("t", 0, 1)]))
    assert list(refusals) == [P0]
    assert committed(cluster) is None


def test_a_closed_consumer_refuses_everything(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = opened(cluster)
    waiting = consumer.poll(cluster.resources(), max_wait_ms=5000)
    cluster.scheduler.pass_ms(200)
    cluster.result(consumer.close())
    assert cluster.result(waiting) == []
    with pytest.raises(ApiError) as refused:
        consumer.poll(cluster.resources())
    assert refused.value.code is ErrorCode.INVALID_REQUEST
