"""Share groups that are reset or deleted, locks that run out, brokers that crash: what is fetched then."""

from __future__ import annotations

import pytest

from compat.differential.share_fetch.members import fetched
from compat.harness.raw_producer import find_coordinators
from compat.harness.waiting import eventually

T = ("t", 0)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def fresh(group, **options):
    """Another member, which fetches."""
    member = group.member()
    fetched(group, member, T, MaxWaitMs=2_000, **options)
    return member


def gone(member):
    """Kafka keeps a share partition in memory for as long as the connection of a session is there."""
    member.connection.close()


def gathered(group, member, number, before_each=lambda: None):
    """So many records, in one fetch or several: their locks need not run out at the same time. Noted once."""
    seen = set()

    def look():
        before = len(group.notes)
        before_each()
        partitions = member.fetch(MaxWaitMs=200)[1]
        del group.notes[before:]
        for first, last, count in partitions.get("t0", {"acquired": []})["acquired"]:
            seen.update((offset, count) for offset in range(first, last + 1))

    eventually(look, lambda _: len(seen) >= number)
    group.notes.append(sorted(seen))


def in_vain(group, member):
    """An acknowledgement of what the member holds no more, by a code that is not Kafka's."""
    _, partitions = member.acknowledge({T: [(0, 9, [ACCEPT])]})
    group.notes[-1] = bool(partitions["t0"])


# offsets that are set


@pytest.mark.parametrize("offset", [0, 3, 10, 12])
def test_a_group_reads_from_where_it_was_set(same, offset):
    def story(group):
        group.produce("t", 5, 5)
        one = group.member()
        fetched(group, one, T, MaxWaitMs=2_000)
        one.acknowledge({T: [(0, 1, [ACCEPT]), (6, 7, [RELEASE])]}, epoch=-1)
        gone(one)
        group.alter_offset("t", offset)
        two = fresh(group)
        group.produce("t", 4)
        fetched(group, two, MaxWaitMs=500)
        fetched(group, two, MaxWaitMs=500)

    same(story, open_all=False)


def test_an_offset_is_set_below_the_start_of_the_log(same):
    def story(group):
        group.produce("t", 5, 5)
        group.delete_records("t", 7)
        group.alter_offset("t", 2)
        one = group.member()
        one.fetch(T, MaxWaitMs=2_000)
        one.fetch(MaxWaitMs=2_000)
        group.notes[:-2] = []
        group.produce("t", 1)
        fetched(group, one, MaxWaitMs=2_000)

    same(story, open_all=False)


def test_an_offset_is_set_beyond_the_end_of_the_log(same):
    def story(group):
        group.produce("t", 5)
        group.alter_offset("t", 8)
        one = group.member()
        one.fetch(T, MaxWaitMs=500)
        one.fetch(MaxWaitMs=500)
        one.acknowledge({T: [(0, 4, [ACCEPT])]})
        one.acknowledge({T: [(8, 8, [ACCEPT])]})
        group.produce("t", 3)
        one.fetch(MaxWaitMs=500)
        group.produce("t", 3)
        fetched(group, one, MaxWaitMs=2_000)

    same(story, open_all=False)


def test_offsets_are_set_while_somebody_holds_records(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        fetched(group, one, T)
        group.alter_offset("t", 4)
        in_vain(group, one)
        for _ in range(3):
            one.fetch(MaxWaitMs=500)
        group.notes[-3:] = []
        fresh(group)

    same(story)


# groups that are deleted


def test_a_group_that_was_deleted_begins_again(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        fetched(group, one, T, MaxWaitMs=2_000)
        one.acknowledge({T: [(0, 4, [ACCEPT])]}, epoch=-1)
        gone(one)
        group.delete()
        group.delete()
        group.initialize({"t": 1})
        fresh(group)

    same(story, open_all=False)


def test_a_group_that_was_deleted_is_fetched_for(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        fetched(group, one, T, MaxWaitMs=2_000)
        one.acknowledge({T: [(0, 4, [ACCEPT])]}, epoch=-1)
        gone(one)
        group.delete()
        two = group.member()
        two.fetch(T, MaxWaitMs=1_000)
        two.fetch(MaxWaitMs=1_000)

    same(story, open_all=False)


def test_a_group_is_deleted_while_somebody_holds_records(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        fetched(group, one, T)
        group.delete()
        in_vain(group, one)

    same(story)


# locks


def test_locks_of_some_records_of_a_batch_run_out(same):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        two.fetch(T, MaxRecords=0)
        fetched(group, one, T)
        one.acknowledge({T: [(2, 3, [ACCEPT]), (5, 5, [REJECT]), (9, 9, [ACCEPT])]})
        gathered(group, two, 6)
        one.acknowledge({T: [(0, 1, [ACCEPT])]})
        two.acknowledge({T: [(0, 1, [RELEASE]), (4, 4, [ACCEPT]), (6, 8, [ACCEPT])]})
        gathered(group, one, 2)

    same(story, share_record_lock_duration_ms="2000")


def test_locks_run_out_until_the_limit_of_deliveries(same):
    def story(group):
        group.produce("t", 4)
        one = group.member()
        fetched(group, one, T)
        gathered(group, one, 4)
        group.produce("t", 1)
        gathered(group, one, 1)
        one.acknowledge({T: [(4, 4, [ACCEPT])]})
        eventually(group.lag, lambda lag: lag == 0)
        one.acknowledge({T: [(0, 3, [ACCEPT])]})
        fetched(group, one)

    same(story, share_record_lock_duration_ms="1000", share_delivery_count_limit="2")


def test_a_lock_that_is_renewed_runs_out_later(same):
    def story(group):
        group.produce("t", 4)
        one, two = group.member(), group.member()
        two.fetch(T, MaxRecords=0)
        fetched(group, one, T)
        gathered(group, two, 2, lambda: one.acknowledge({T: [(0, 1, [RENEW])]}, IsRenewAck=True))
        one.acknowledge({T: [(0, 1, [ACCEPT])]})
        one.acknowledge({T: [(2, 3, [ACCEPT])]})

    same(story, share_record_lock_duration_ms="2000")


# a crash


def crash(group):
    """And the first fetch that gets something afterwards; who fetched."""
    group.close()
    group.side.disconnect()
    group.side.server.kill()
    group.side.server.start_again()
    group.notes.append("crash")
    find_coordinators(group.side)

    def fetched_something():
        member = group.member()
        _, partitions = member.fetch(T, MaxWaitMs=1_000, MaxRecords=4, ShareAcquireMode=1)
        if isinstance(partitions, dict) and partitions.get("t0", {}).get("acquired"):
            return member
        group.notes.pop()
        return None

    return eventually(fetched_something, seconds=60)


def test_what_a_crash_leaves(same):
    def story(group):
        group.produce("t", 5, 5, 5, 5)
        one = group.member()
        fetched(group, one, T, MaxRecords=10, BatchSize=5)
        one.acknowledge({T: [(0, 6, [ACCEPT, REJECT, RELEASE, GAP, RELEASE, ACCEPT, RELEASE])]})
        fetched(group, one, MaxRecords=1)
        two = crash(group)
        two.acknowledge({T: [(2, 2, [ACCEPT])]})
        two.acknowledge({T: [(4, 4, [RELEASE])]})
        fetched(group, two)
        fetched(group, two)

    same(story)


def test_delivery_counts_outlive_a_crash(same):
    def story(group):
        group.produce("t", 6)
        one = group.member()
        for _ in range(2):
            fetched(group, one, T)
            one.acknowledge({T: [(0, 5, [RELEASE])]})
        fetched(group, one, MaxRecords=1)
        two = crash(group)
        fetched(group, two)

    same(story, share_delivery_count_limit="10")


def test_nothing_was_answered_before_a_crash(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        fetched(group, one, T)
        two = crash(group)
        fetched(group, two)
        two.acknowledge({T: [(0, 3, [ACCEPT])]})

    same(story)
