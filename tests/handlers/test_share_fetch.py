from __future__ import annotations

import pytest

from kbroker.coordinators.shares.state import ShareState
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.share_fetch import FetchPartition, FetchTopic

from .conftest import NOW_MS, on_late_logs_too
from .quota_requests import alter, remove
from .share_members import (
    ACCEPT,
    GROUP,
    RELEASE,
    ShareMember,
    acquired,
    batches,
    codes,
    configure,
    initialize,
)

UNKNOWN_ID = b"nobody knows me!"
LOCK_MS = 30_000


@pytest.fixture(autouse=True)
def topic(cluster):
    topic = cluster.create("t", partitions=3)
    initialize(cluster, topic)
    return topic


@pytest.fixture
def one(cluster, topic):
    return ShareMember(cluster, topic, "one")


@pytest.fixture
def two(cluster, topic):
    return ShareMember(cluster, topic, "two")


def produce(cluster, *sizes, partition=0, **batch):
    for size in sizes:
        cluster.produce("t", *[NOW_MS] * size, partition=partition, **batch)


# what is acquired


@on_late_logs_too
@pytest.mark.parametrize("version", [1, 2])
def test_records_are_acquired_and_come_as_whole_batches(cluster, one, version):
    produce(cluster, 3, 2)
    answer = one.fetch(0, version=version)
    assert acquired(answer) == {0: [(0, 4, 1)]}
    assert batches(answer) == [(0, 2), (3, 4)]
    assert answer.acquisition_lock_timeout_ms == LOCK_MS


def test_what_one_member_holds_no_other_gets(cluster, one, two):
    produce(cluster, 3)
    one.fetch(0)
    assert acquired(two.fetch(0)) == {0: []}
    produce(cluster, 2)
    assert acquired(two.fetch()) == {0: [(3, 4, 1)]}


def test_groups_do_not_share(cluster, topic, one):
    initialize(cluster, topic, "other")
    produce(cluster, 3)
    one.fetch(0)
    assert acquired(ShareMember(cluster, topic, "one", "other").fetch(0)) == {0: [(0, 2, 1)]}


def test_the_rest_of_a_batch_comes_with_it_unless_the_limit_is_strict(cluster, one, two):
    produce(cluster, 10, 10)
    assert acquired(one.fetch(0, max_records=5, share_acquire_mode=1)) == {0: [(0, 4, 1)]}
    assert acquired(two.fetch(0, max_records=5)) == {0: [(5, 9, 1)]}


def test_the_limit_of_records_is_for_all_partitions(cluster, one):
    for partition in range(3):
        produce(cluster, 5, partition=partition)
    got = acquired(one.fetch(0, 1, 2, max_records=7, share_acquire_mode=1))
    assert sum(last - first + 1 for ranges in got.values() for first, last, _ in ranges) == 7


def test_partitions_take_turns(cluster, one):
    for partition in range(3):
        produce(cluster, 1, 1, 1, partition=partition)
    one.fetch(0, 1, 2, max_records=1)
    got = [acquired(one.fetch(max_records=1)) for _ in range(3)]
    assert sorted(partition for each in got for partition in each) == [0, 1, 2]


def test_the_limit_of_bytes_is_divided(cluster, one):
    for partition in range(2):
        produce(cluster, *[1] * 20, partition=partition)
    got = acquired(one.fetch(0, 1, max_bytes=76 * 10))
    assert got == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_only_the_batches_of_acquired_records_come(cluster, one, two):
    produce(cluster, 5, 5, 5)
    one.fetch(0, acks=None)
    one.acknowledge({0: [(0, 4, [ACCEPT]), (5, 9, [RELEASE])]})
    assert batches(two.fetch(0)) == [(5, 9)]


@pytest.mark.parametrize("limits", [{"max_records": 0}, {"max_bytes": 0}])
def test_without_room_for_records_there_are_only_acknowledgements(cluster, one, limits):
    produce(cluster, 3)
    one.fetch(0)
    produce(cluster, 3)
    answer = one.fetch(acks={0: [(0, 2, [ACCEPT])]}, max_wait_ms=1000, **limits)
    assert acquired(answer) == {0: []}
    assert codes(answer) == {0: (0, 0)}


# where it begins


def test_latest_is_the_end_of_the_log_at_the_first_fetch(cluster, topic):
    initialize(cluster, topic, "latest", share_auto_offset_reset="latest")
    produce(cluster, 3)
    one = ShareMember(cluster, topic, "one", "latest")
    assert acquired(one.fetch(0)) == {0: []}
    produce(cluster, 2)
    assert acquired(one.fetch()) == {0: [(3, 4, 1)]}


@on_late_logs_too
@pytest.mark.parametrize(("duration", "first"), [("PT1H", 1), ("PT5S", 3), ("P1D", 0), ("PT0.5S", None)])
def test_a_duration_finds_the_first_record_since_then(cluster, topic, duration, first):
    initialize(cluster, topic, "ago", share_auto_offset_reset=f"by_duration:{duration}")
    for ago_ms in (7_200_000, 3_600_000, 60_000, 1000):
        cluster.produce("t", NOW_MS - ago_ms)
    got = acquired(ShareMember(cluster, topic, "one", "ago").fetch(0))
    assert got == ({0: [(first, 3, 1)]} if first is not None else {0: []})


def test_records_that_the_log_has_no_more_are_passed_over(cluster, one):
    produce(cluster, 5, 5, 5)
    one.fetch(0, max_records=1)
    one.acknowledge({0: [(0, 4, [RELEASE])]})
    cluster.broker.find_log("t", 0).delete_records_before(7)
    assert acquired(one.fetch()) == {}
    assert acquired(one.fetch())[0][0][0] == 7


# waiting


def test_a_fetch_waits_for_records(cluster, one):
    waiting = one.fetch(0, max_wait_ms=1000)
    assert isinstance(waiting, Pending)
    produce(cluster, 3)
    assert acquired(waiting.result()) == {0: [(0, 2, 1)]}
    assert not cluster.scheduler.waiting or len(cluster.scheduler.waiting) == 1  # the lock's


def test_a_fetch_waits_for_enough_bytes(cluster, one):
    waiting = one.fetch(0, max_wait_ms=1000, min_bytes=200)
    produce(cluster, 1)
    assert not waiting.done
    produce(cluster, 1, 1)
    assert acquired(waiting.result()) == {0: [(0, 2, 1)]}


def test_a_release_wakes_who_waits(cluster, one, two):
    produce(cluster, 3)
    one.fetch(0)
    waiting = two.fetch(0, max_wait_ms=1000)
    one.acknowledge({0: [(0, 2, [RELEASE])]})
    assert acquired(waiting.result()) == {0: [(0, 2, 2)]}


def test_a_lock_that_runs_out_wakes_who_waits(cluster, one, two):
    produce(cluster, 3)
    one.fetch(0)
    waiting = two.fetch(0, max_wait_ms=60_000)
    cluster.now_ms += LOCK_MS
    cluster.broker.time_jumped()
    assert acquired(waiting.result()) == {0: [(0, 2, 2)]}
    assert codes(one.acknowledge({0: [(0, 2, [ACCEPT])]})) == {0: ErrorCode.INVALID_RECORD_STATE}


def test_room_for_more_records_wakes_who_waits(cluster, one):
    configure(cluster, share_partition_max_record_locks="100")
    produce(cluster, 100, 100)
    one.fetch(0)
    assert acquired(one.fetch()) == {}
    waiting = one.fetch(max_wait_ms=1000)
    assert isinstance(waiting, Pending)
    other = ShareMember(cluster, cluster.broker.topics.get("t"), "one")
    other.epoch = one.epoch
    other.acknowledge({0: [(0, 99, [ACCEPT])]})
    assert acquired(waiting.result()) == {0: [(100, 199, 1)]}


def test_a_wait_ends_with_what_there_is(cluster, one):
    waiting = one.fetch(0, max_wait_ms=1000, min_bytes=10_000)
    produce(cluster, 1)
    cluster.scheduler.waiting[-1]()
    assert acquired(waiting.result()) == {0: [(0, 0, 1)]}


def test_who_stops_waiting_acquires_nothing(cluster, one, two):
    waiting = one.fetch(0, max_wait_ms=1000)
    waiting.abandon()
    one.disconnect()
    produce(cluster, 3)
    assert acquired(two.fetch(0)) == {0: [(0, 2, 1)]}


def test_two_that_wait_for_many_bytes_do_not_keep_each_other_awake(cluster, one, two):
    waiting = [each.fetch(0, max_wait_ms=1000, min_bytes=10_000) for each in (one, two)]
    produce(cluster, 1)
    assert not any(each.done for each in waiting)


def test_a_session_that_has_ended_acquires_nothing(cluster, topic, one, two):
    waiting = one.fetch(0, max_wait_ms=1000)
    closing = ShareMember(cluster, topic, "one")
    closing.acknowledge(epoch=-1)
    produce(cluster, 3)
    assert acquired(waiting.result()) == {0: []}
    assert acquired(two.fetch(0)) == {0: [(0, 2, 1)]}


def test_what_is_reset_meanwhile_ends_the_wait(cluster, topic, one):
    produce(cluster, 3)
    one.fetch(0)
    waiting = one.fetch(max_wait_ms=1000)
    cluster.broker.share_states.replace({ShareKey(GROUP, topic.topic_id, 0): ShareState(1)}).result()
    assert acquired(waiting.result()) == {}
    assert acquired(one.fetch()) == {0: [(1, 2, 1)]}


@pytest.fixture
def cold_reads(cluster, monkeypatch):
    """What the log has read; each is delivered by `resolve`."""
    log = cluster.broker.find_log("t", 0)
    read, cold = log.read, []

    def read_later(*arguments, **options):
        later = Pending()
        cold.append((later, read(*arguments, **options)))
        return later

    monkeypatch.setattr(log, "read", read_later)
    return cold


def test_a_share_partition_is_read_by_one_fetch_at_a_time(cluster, one, two, cold_reads):
    produce(cluster, 3)
    first, second = one.fetch(0), two.fetch(0, max_wait_ms=1000)
    assert len(cold_reads) == 1
    assert not second.done
    cold_reads[0][0].resolve(cold_reads[0][1])
    assert acquired(first.result()) == {0: [(0, 2, 1)]}
    assert len(cold_reads) == 1
    produce(cluster, 2)
    cold_reads[1][0].resolve(cold_reads[1][1])
    assert acquired(second.result()) == {0: [(3, 4, 1)]}


def test_who_goes_while_it_reads_leaves_the_records_to_others(cluster, one, two, cold_reads):
    produce(cluster, 3)
    first, second = one.fetch(0), two.fetch(0, max_wait_ms=1000)
    first.abandon()
    one.disconnect()
    for later, got in cold_reads:
        if not later.done:
            later.resolve(got)
    assert acquired(second.result()) == {0: [(0, 2, 1)]}


def test_a_read_that_fails_leaves_the_records_to_others(cluster, one, two, cold_reads):
    produce(cluster, 3)
    first, second = one.fetch(0), two.fetch(0, max_wait_ms=1000)
    cold_reads[0][0].fail(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert codes(first.result()) == {0: (ErrorCode.KAFKA_STORAGE_ERROR, 0)}
    cold_reads[1][0].resolve(cold_reads[1][1])
    assert acquired(second.result()) == {0: [(0, 2, 1)]}


def test_aborted_batches_are_passed_over_until_there_is_something(cluster, one):
    configure(cluster, share_isolation_level="read_committed")
    log = cluster.broker.find_log("t", 0)
    for number in range(3):
        cluster.produce(
            "t",
            *[NOW_MS] * 2000,
            producer_id=9,
            producer_epoch=0,
            base_sequence=number * 2000,
            transactional=True,
        )
        log.append_control(9, 0, commit=False, coordinator_epoch=0, now_ms=NOW_MS)
    produce(cluster, 1)
    assert acquired(one.fetch(0, max_wait_ms=1000, max_records=100_000))


# sessions, as far as answers show them


def test_later_answers_list_only_what_is_new(cluster, one):
    produce(cluster, 1)
    assert acquired(one.fetch(0, 1)) == {0: [(0, 0, 1)], 1: []}
    assert acquired(one.fetch()) == {}
    assert acquired(one.fetch(2)) == {2: []}
    assert acquired(one.fetch()) == {}


def test_a_forgotten_partition_is_not_fetched_from(cluster, one):
    one.fetch(0, 1)
    produce(cluster, 1)
    produce(cluster, 1, partition=1)
    assert acquired(one.fetch(forget=[0])) == {1: [(0, 0, 1)]}


@pytest.mark.parametrize("how", ["fetch", "acknowledge", "disconnect"])
def test_the_end_of_a_session_releases_what_the_member_holds(cluster, one, two, how):
    produce(cluster, 3)
    one.fetch(0)
    waiting = two.fetch(0, max_wait_ms=1000)
    one.disconnect() if how == "disconnect" else getattr(one, how)(epoch=-1)
    assert acquired(waiting.result()) == {0: [(0, 2, 2)]}


def test_the_last_session_of_a_group_takes_its_share_partitions_out_of_memory(cluster, topic, one):
    produce(cluster, 3)
    one.fetch(0)
    one.acknowledge({0: [(0, 0, [ACCEPT])]})
    key = ShareKey(GROUP, topic.topic_id, 0)
    assert cluster.broker.shares.get(key) is not None
    one.disconnect()
    assert cluster.broker.shares.get(key) is None
    assert cluster.broker.share_states.get(key).start_offset == 1
    assert acquired(ShareMember(cluster, topic, "other").fetch(0)) == {0: [(1, 2, 2)]}


def test_more_sessions_than_allowed_are_refused_after_a_wait(cluster, topic, one):
    cluster.broker.shares.sessions._limit = lambda: 1
    one.fetch(0)
    refused = ShareMember(cluster, topic, "two").fetch(0, max_wait_ms=1000)
    assert isinstance(refused, Pending)
    cluster.scheduler.waiting[-1]()
    assert refused.result().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert one.fetch(0, epoch=0).error_code == ErrorCode.NONE


def test_a_session_of_many_partitions(cluster):
    many = cluster.create("many", partitions=300)
    initialize(cluster, many)
    cluster.produce("many", NOW_MS, partition=299)
    member = ShareMember(cluster, many)
    first = member.fetch(*range(301))
    assert acquired(first) == {number: [] for number in range(299)} | {299: [(0, 0, 1)], 300: []}
    assert codes(first)[300] == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE)
    cluster.produce("many", NOW_MS, partition=0)
    assert acquired(member.fetch()) == {0: [(0, 0, 1)], 300: []}


# refusals


def test_an_acquire_mode_that_is_none_is_told_after_the_acknowledgements(cluster, one, two, caplog):
    produce(cluster, 5)
    one.fetch(0)
    answer = one.fetch(acks={0: [(0, 4, [ACCEPT])]}, share_acquire_mode=7)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not caplog.records
    one.disconnect()
    assert acquired(two.fetch(0)) == {0: []}


@pytest.mark.parametrize("field", ["max_records", "max_bytes"])
def test_a_limit_below_nothing_is_nothing(cluster, one, field):
    produce(cluster, 5)
    assert acquired(one.fetch(0, **{field: -1})) == {}
    assert acquired(one.fetch()) == {0: [(0, 4, 1)]}


def test_a_partition_that_is_listed_twice_is_fetched_once(cluster, topic, one):
    produce(cluster, 5)
    listed = [FetchTopic(topic.topic_id, [FetchPartition(0, []), FetchPartition(0, [])])] * 2
    assert acquired(one.fetch(topics=listed)) == {0: [(0, 4, 1)]}


@pytest.mark.parametrize("field", ["group_id", "member_id"])
def test_a_group_and_a_member_are_needed(one, field):
    assert one.fetch(0, **{field: None}).error_code == ErrorCode.INVALID_REQUEST


def test_what_renews_cannot_fetch(one):
    assert one.fetch(0, is_renew_ack=True).error_code == ErrorCode.INVALID_REQUEST


def test_share_groups_can_be_switched_off(cluster, one):
    cluster.broker.features._levels["share.version"] = 0
    assert one.fetch(0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_errors_of_partitions_do_not_touch_the_others(cluster, one):
    produce(cluster, 1)
    assert codes(one.fetch(0, 7)) == {0: (0, 0), 7: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)}


def test_an_unknown_topic_id_is_an_error_of_its_partitions(one):
    assert codes(one.fetch(0, topic_id=UNKNOWN_ID)) == {0: (ErrorCode.UNKNOWN_TOPIC_ID, 0)}


def test_a_partition_that_was_never_assigned_to_the_group_is_not_served(cluster, topic):
    member = ShareMember(cluster, topic, "one", "unknown")
    assert codes(member.fetch(0)) == {0: (ErrorCode.UNKNOWN_SERVER_ERROR, 0)}


def test_a_deleted_topic_ends_the_wait(cluster, topic, one):
    waiting = one.fetch(0, max_wait_ms=1000)
    cluster.broker.topics.delete(topic).result()
    assert waiting.done
    assert codes(one.fetch()) == {0: (ErrorCode.UNKNOWN_TOPIC_ID, 0)}


# quotas


def test_what_is_above_the_quota_is_not_acquired(cluster, one, two):
    assert alter(cluster, {"client-id": "test"}, consumer_byte_rate=100) is ErrorCode.NONE
    produce(cluster, *[1] * 100)
    first = one.fetch(0)
    assert first.throttle_time_ms == 0
    throttled = one.fetch()
    assert throttled.throttle_time_ms > 0
    assert acquired(throttled) == {}
    assert remove(cluster, {"client-id": "test"}, "consumer_byte_rate") is ErrorCode.NONE
    last = acquired(first)[0][-1][1]
    assert acquired(two.fetch(0))[0][0][0] == last + 1


# transactions


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [("read_committed", [[(0, 2, 1)], [(5, 8, 1)]]), ("read_uncommitted", [[(0, 4, 1)], [(5, 8, 1)]])],
)
def test_records_of_aborted_transactions_are_not_given_to_committed_readers(
    cluster, one, isolation, expected
):
    configure(cluster, share_isolation_level=isolation)
    log = cluster.broker.find_log("t", 0)

    def end(commit):
        log.append_control(9, 0, commit=commit, coordinator_epoch=0, now_ms=NOW_MS)

    produce(cluster, 3)
    produce(cluster, 2, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    first = acquired(one.fetch(0))
    end(commit=False)
    produce(cluster, 2, producer_id=9, producer_epoch=0, base_sequence=2, transactional=True)
    end(commit=True)
    assert [first[0], acquired(one.fetch())[0]] == expected
