"""What a share fetch gets: limits, several members, several partitions, isolation, logs that begin later."""

from __future__ import annotations

import time

import pytest

from compat.harness.raw_producer import RawProducer, find_coordinators

T = ("t", 0)
ACCEPT, RELEASE, REJECT = 1, 2, 3


@pytest.mark.parametrize("version", [1, 2])
def test_records_come_as_whole_batches(same, version):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, version=version)
        group.produce("t", 3, 1, 4)
        one.fetch(version=version)
        one.fetch(version=version)

    same(story)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(("most", "batch_size"), [(5, 5), (5, 500), (10, 5), (12, 3), (500, 1), (1, 1)])
def test_the_limit_of_records(same, mode, most, batch_size):
    def story(group):
        group.produce("t", 10, 10, 2, 1)
        one, two = group.member(), group.member()
        limits = {"MaxRecords": most, "BatchSize": batch_size, "ShareAcquireMode": mode}
        one.fetch(T, **limits)
        two.fetch(T, **limits)
        first, last, _ = one.fetch(**limits)[1].get("t0", group.notes[0][1][1]["t0"])["acquired"][0]
        one.acknowledge({T: [(first, last, [RELEASE])]})
        two.fetch(**limits)

    same(story)


def test_the_limit_of_records_is_for_all_partitions(same):
    def story(group):
        for partition in range(3):
            group.produce("u", 5, 5, partition=partition)
        one = group.member()
        seen = []
        for _ in range(4):
            one.fetch(("u", 0), ("u", 1), ("u", 2), MaxRecords=8, ShareAcquireMode=1)
            got = group.notes.pop()[1][1]
            seen.append(sum(last - first + 1 for each in got.values() for first, last, _ in each["acquired"]))
        group.notes.append(seen)

    same(story)


def test_the_limit_of_bytes(same):
    def story(group):
        group.produce("t", 1, 1, 1, 1, value=b"." * 1000)
        one = group.member()
        one.fetch(T, MaxBytes=2500)
        one.fetch(MaxBytes=1)
        one.fetch(MaxBytes=0)
        one.fetch(MaxRecords=0)
        one.fetch()

    same(story)


def test_members_share_and_groups_do_not(same):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        one.fetch(T)
        two.fetch(T)
        group.produce("t", 10)
        two.fetch()
        group.produce("t", 10)
        one.fetch()

    same(story)


def test_wrong_partitions(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, ("t", 7))
        one.fetch(("u", 0))
        one.fetch()

    same(story)


def test_a_partition_that_is_not_initialized(same):
    def story(group):
        one = group.member()
        one.fetch(T, MaxWaitMs=1000)
        one.fetch(T, MaxWaitMs=1000)

    same(story, initialize=False)


@pytest.mark.parametrize("member_id", [None, "", "a", "x" * 36, "x" * 37, "not a uuid"])
@pytest.mark.parametrize("api", ["fetch", "acknowledge"])
def test_member_ids(same, member_id, api):
    def story(group):
        one = group.member()
        one.member_id = member_id
        getattr(one, api)(epoch=0)
        getattr(one, api)(epoch=1)

    same(story)


@pytest.mark.parametrize("group_id", [None, ""])
@pytest.mark.parametrize("api", ["fetch", "acknowledge"])
def test_group_ids(same, group_id, api):
    def story(group):
        one = group.member()
        getattr(one, api)(epoch=0, GroupId=group_id)
        getattr(one, api)(epoch=0, GroupId=group_id, MemberId=None)

    same(story)


@pytest.mark.parametrize("mode", [2, -1])
def test_unknown_acquire_modes(same, mode):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, ShareAcquireMode=mode)
        one.fetch()

    same(story)


def test_a_fetch_waits_for_records(same):
    def story(group):
        one = group.member()
        one.fetch(T)
        one.send_fetch(MaxWaitMs=20_000)
        group.produce("t", 10)
        one.receive()

    same(story)


def test_a_fetch_waits_for_locks_to_run_out(same):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        one.fetch(T)
        began = time.monotonic()
        two.fetch(T, MaxWaitMs=20_000)
        group.notes.append(time.monotonic() - began < 15)
        one.acknowledge({T: [(0, 9, [ACCEPT])]})

    same(story, share_record_lock_duration_ms="1000")


def test_the_start_is_the_end_of_the_log_for_latest(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, MaxWaitMs=500)
        group.produce("t", 5)
        one.fetch(MaxWaitMs=5000)

    same(story, open_all=False, share_auto_offset_reset="latest")


@pytest.mark.parametrize("duration", ["PT1H", "P1D"])
def test_the_start_is_some_time_ago(same, duration):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, MaxWaitMs=1000)

    same(story, open_all=False, share_auto_offset_reset=f"by_duration:{duration}")


def test_the_log_begins_later(same):
    def story(group):
        group.produce("t", 5, 5, 5)
        one = group.member()
        one.fetch(T, MaxRecords=1)
        one.acknowledge({T: [(0, 4, [RELEASE])]})
        deleted = {"Name": group.names["t"], "Partitions": [{"PartitionIndex": 0, "Offset": 10}]}
        group.side.raw("DeleteRecords", 2, {"Topics": [deleted], "TimeoutMs": 10_000})
        one.fetch()
        one.fetch()

    same(story)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_isolation(same, isolation):
    def story(group):
        find_coordinators(group.side)
        topic = group.names["t"]
        producer = RawProducer(group.side, f"txn-{group.group_id}", {topic: group.ids["t"]})
        group.produce("t", 3)
        producer.init()
        one = group.member()
        for commit in (False, True):
            producer.add(topic, 0)
            for _ in range(2):
                producer.produce(topic)
            one.fetch(T if not commit else ("u", 0))
            producer.end(commit=commit)
            producer.settle()
            one.fetch()

    same(story, share_isolation_level=isolation)


def test_the_topic_is_deleted(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        group.side.raw("DeleteTopics", 6, {"Topics": [{"Name": group.names["t"]}], "TimeoutMs": 10_000})
        one.acknowledge({T: [(0, 9, [ACCEPT])]})

    same(story)
