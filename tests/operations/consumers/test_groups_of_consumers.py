"""Several consumers of one group: partitions go from one to another, and no record twice or not at all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.operations.consumers.consumer import Consumer
from kbroker.operations.consumers.errors import NotAssigned
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_offsets import NewOffset, TopicPartition
from kbroker.pending import Pending
from tests.support.timed_cluster import TimedCluster

AUTO = ConsumerSettings(auto_offset_reset=OffsetReset.EARLIEST)
BY_HAND = ConsumerSettings(auto_offset_reset=OffsetReset.EARLIEST, auto_commit=False)


def joined(cluster: TimedCluster, options: ConsumerSettings = AUTO) -> Consumer:
    consumer = cluster.broker.consumers.open(cluster.resources(), "g", options)
    consumer.subscribe(cluster.resources(), ["t"])
    return consumer


def taken(cluster: TimedCluster, consumer: Consumer, **limits: int) -> list[bytes]:
    return cluster.values(cluster.result(consumer.poll(cluster.resources(), **limits)))


def test_partitions_are_shared_out_and_taken_over_when_one_leaves(cluster: TimedCluster) -> None:
    cluster.create("t", 4)
    first = joined(cluster)
    assert len(cluster.result(first.assigned(max_wait_ms=1000))) == 4
    second = joined(cluster)
    cluster.scheduler.pass_ms(2000)
    assert len(first.assignment) == len(second.assignment) == 2
    assert not set(first.assignment) & set(second.assignment)
    cluster.result(second.close())
    cluster.scheduler.pass_ms(10_000)
    assert len(first.assignment) == 4


def test_a_partition_stays_until_its_records_are_done(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    for partition in range(2):
        cluster.produce("t", partition, b"%d" % partition)
    first = joined(cluster)
    assert sorted(taken(cluster, first, max_wait_ms=500)) == [b"0", b"1"]
    second = joined(cluster)
    cluster.scheduler.pass_ms(20_000)
    assert second.assignment == [], "the first still has records in hand"
    assert taken(cluster, first) == []
    cluster.scheduler.pass_ms(2000)
    assert len(second.assignment) == 1
    assert taken(cluster, second, max_wait_ms=500) == [], "they were committed before"


def test_a_commit_of_all_that_was_delivered_lets_go_at_once(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    for partition in range(2):
        cluster.produce("t", partition, b"%d" % partition)
    first = joined(cluster, BY_HAND)
    taken(cluster, first, max_wait_ms=500)
    second = joined(cluster, BY_HAND)
    cluster.scheduler.pass_ms(5000)
    assert second.assignment == []
    assert cluster.result(first.commit(cluster.resources())) == {}
    cluster.scheduler.pass_ms(2000)
    assert len(second.assignment) == 1
    assert taken(cluster, second, max_wait_ms=500) == []


def test_what_is_handed_back_goes_to_who_has_the_partition_then(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    for partition in range(2):
        cluster.produce("t", partition, *(b"%d-%d" % (partition, number) for number in range(3)))
    first = joined(cluster)
    assert len(taken(cluster, first, max_wait_ms=500)) == 6
    changes = first.assignment_changes
    second = joined(cluster)
    cluster.scheduler.pass_ms(2000)
    assert first.assignment_changes > changes
    first.through_with({TopicPartition("t", 0): 1, TopicPartition("t", 1): 1})
    first.hand_back({TopicPartition("t", 0): 1, TopicPartition("t", 1): 1})
    cluster.scheduler.pass_ms(2000)
    assert len(second.assignment) == 1
    left = taken(cluster, first) + taken(cluster, second, max_wait_ms=500)
    assert sorted(left) == [b"0-1", b"0-2", b"1-1", b"1-2"]


def test_who_has_nothing_in_hand_gives_up_without_being_asked(cluster: TimedCluster) -> None:
    cluster.create("t", 2)
    first = joined(cluster)
    cluster.result(first.assigned(max_wait_ms=1000))
    waiting = first.poll(cluster.resources(), max_wait_ms=60_000)
    second = joined(cluster)
    cluster.scheduler.pass_ms(2000)
    assert len(second.assignment) == 1
    assert isinstance(waiting, Pending)
    assert not waiting.done, "the poll goes on with what is left"
    (left,) = first.assignment
    cluster.produce("t", left.partition, b"x")
    assert cluster.values(cluster.result(waiting)) == [b"x"]


def test_who_does_not_give_up_in_time_is_fenced_and_cannot_commit_over_others(cluster: TimedCluster) -> None:
    cluster.create("t", 1)
    cluster.produce("t", 0, b"0", b"1")
    slow = joined(
        cluster,
        ConsumerSettings(
            auto_offset_reset=OffsetReset.EARLIEST, auto_commit=False, rebalance_timeout_ms=10_000
        ),
    )
    cluster.result(slow.poll(cluster.resources(), max_wait_ms=500))
    others = [joined(cluster, BY_HAND) for _ in range(3)]
    cluster.scheduler.pass_ms(10_000)
    cluster.result(slow.commit(cluster.resources(), [NewOffset("t", 0, 1)]))
    # One partition for four: whoever has it now, the record in hand was the slow one's until it is fenced.
    cluster.scheduler.pass_ms(30_000)
    holders = [each for each in (slow, *others) if each.assignment]
    assert len(holders) == 1
    if holders != [slow]:
        refusals = cluster.result(slow.commit(cluster.resources(), [NewOffset("t", 0, 2)]))
        assert isinstance(refusals[TopicPartition("t", 0)], NotAssigned)


def test_a_fenced_member_joins_again(cluster: TimedCluster) -> None:
    cluster.create("t", 1)
    consumer = joined(cluster)
    cluster.result(consumer.assigned(max_wait_ms=1000))
    group = cluster.broker.groups.consumer_groups.group("g")
    (member,) = group.members.values()
    cluster.result(
        cluster.broker.groups.consumer_groups.fence(group, (member,), cluster.scheduler.now_ms, None)
    )
    cluster.scheduler.pass_ms(15_000)
    assert consumer.assignment == [TopicPartition("t", 0)]
    cluster.produce("t", 0, b"x")
    assert taken(cluster, consumer) == [b"x"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("join"), st.booleans()),
            st.tuples(st.just("leave"), st.integers(0, 5)),
            st.tuples(st.just("poll"), st.integers(0, 5)),
            st.tuples(st.just("produce"), st.integers(0, 3)),
            st.tuples(st.just("pass"), st.sampled_from([10, 200, 6000])),
        ),
        min_size=5,
        max_size=40,
    )
)
def test_every_record_is_delivered_once_however_members_come_and_go(steps: list[tuple[str, int]]) -> None:
    cluster = TimedCluster()
    cluster.create("t", 4)
    members: list[Consumer] = []
    produced = 0
    delivered: list[bytes] = []

    def poll(consumer: Consumer, wait_ms: int = 0) -> None:
        got = taken(cluster, consumer, max_records=3, max_wait_ms=wait_ms)
        delivered.extend(got)
        if not consumer.settings.auto_commit:
            assert cluster.result(consumer.commit(cluster.resources())) == {}

    for step, number in steps:
        if step == "join" and len(members) < 6:
            members.append(joined(cluster, AUTO if number else BY_HAND))
        elif step == "leave" and members:
            cluster.result(members.pop(number % len(members)).close())
        elif step == "poll" and members:
            poll(members[number % len(members)])
        elif step == "produce":
            for _ in range(4):
                cluster.produce("t", number, b"%d" % produced)
                produced += 1
        elif step == "pass":
            cluster.scheduler.pass_ms(number)
    members.append(joined(cluster))
    for _ in range(200):
        if len(delivered) >= produced and len(set(delivered)) == produced:
            break
        for member in members:
            poll(member, wait_ms=100)
        cluster.scheduler.pass_ms(500)
    assert sorted(map(int, delivered)) == list(range(produced))
    cluster.broker.close()
