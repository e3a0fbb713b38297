"""Logs that lose records while a share group reads them: DeleteRecords, compaction, deleted topics."""

from __future__ import annotations

import random

import pytest

from compat.differential.compaction.scenarios import Topic
from compat.differential.share_fetch.members import fetched
from kbroker.protocol.records import Record

T = ("t", 0)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def until_some(group, member, *partitions):
    """What is fetched, be the first answers empty."""
    for _ in range(5):
        if got := fetched(group, member, *partitions):
            return got
        group.notes.pop()
    return []


# DeleteRecords

WHERE = {"below": 3, "to the start": 5, "into": 12, "to the end": 20, "past": 25, "all": 30}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("kind", [RELEASE, ACCEPT, REJECT, None])
def test_the_log_begins_later(same, where, kind):
    """0 to 4 are done with, 5 to 19 in flight; then records are deleted; the rest is fetched."""

    def story(group):
        group.produce("t", 5, 5, 5, 5, 5, 5)
        one, two = group.member(), group.member()
        fetched(group, one, T, MaxRecords=20, BatchSize=5)
        one.acknowledge({T: [(0, 4, [ACCEPT])]})
        if kind is not None:
            one.acknowledge({T: [(7, 13, [kind])]})
        group.delete_records("t", WHERE[where])
        two.fetch(T, MaxRecords=0)
        group.notes.pop()
        until_some(group, two)
        fetched(group, two)
        group.produce("t", 2)
        fetched(group, two)

    same(story)


@pytest.mark.parametrize("kind", [GAP, ACCEPT, RELEASE, REJECT])
@pytest.mark.parametrize("seen", [True, False])
def test_what_is_deleted_while_it_is_held_can_be_acknowledged(same, kind, seen):
    """``seen``: somebody else has noticed that the log begins later."""

    def story(group):
        group.produce("t", 5, 5, 5)
        one, two = group.member(), group.member()
        two.fetch(T, MaxRecords=0)
        fetched(group, one, T, MaxRecords=10, BatchSize=5)
        one.acknowledge({T: [(1, 1, [RELEASE])]})
        group.delete_records("t", 7)
        if seen:
            until_some(group, two)
        one.acknowledge({T: [(3, 4, [kind])]})
        one.acknowledge({T: [(5, 8, [kind])]})
        one.acknowledge({T: [(9, 9, [kind])]})
        until_some(group, two)
        fetched(group, two)

    same(story)


def test_locks_on_deleted_records_run_out(same):
    def story(group):
        group.produce("t", 5, 5, 5)
        one, two = group.member(), group.member()
        two.fetch(T, MaxRecords=0)
        fetched(group, one, T, MaxRecords=10, BatchSize=5)
        group.delete_records("t", 7)
        fetched(group, two)
        two.fetch(MaxWaitMs=20_000)

    same(story, share_record_lock_duration_ms="1000")


# compaction


@pytest.fixture
def compacted(same):
    """Tells a story with a topic of which few records are left of 0 to 39, once it is compacted."""

    def compacted(story):
        def with_topic(group):
            topic = Topic(group.side, f"{group.group_id}-t")
            described = group.side.raw("Metadata", 12, {"Topics": [{"Name": topic.name}]})["Topics"][0]
            group.names["t"], group.ids["t"] = topic.name, described["TopicId"]
            group.initialize({"t": 1})
            group.open_all({"t": 1})
            for first in range(0, 40, 5):
                keys = [b"again %d" % (offset % 4) for offset in range(first, first + 5)]
                if first % 10:
                    keys[first // 10] = b"once %d" % first  # 5, 16, 27, 38
                topic.append([Record(topic.clock_ms, key, b"value", ()) for key in keys])

            def compact():
                topic.fill_a_segment(random.Random(7))
                topic.compact()

            story(group, compact)

        same(with_topic, topics={}, initialize=False)

    return compacted


@pytest.mark.parametrize("mode", [0, 1])
def test_holes_are_acquired_with_their_neighbours(compacted, mode):
    def story(group, compact):
        compact()
        one = group.member()
        for number in range(6):
            one.fetch(*[T] * (not number), MaxRecords=7, BatchSize=3, ShareAcquireMode=mode)

    compacted(story)


@pytest.mark.parametrize("kind", [GAP, ACCEPT, RELEASE, REJECT])
def test_records_are_compacted_away_while_they_are_held(compacted, kind):
    def story(group, compact):
        one, two = group.member(), group.member()
        fetched(group, one, T, MaxRecords=30, BatchSize=5)
        one.acknowledge({T: [(2, 3, [RELEASE]), (7, 21, [RELEASE])]})
        compact()
        fetched(group, two, T, MaxRecords=10)
        fetched(group, two, MaxRecords=10)
        one.acknowledge({T: [(0, 1, [kind]), (4, 6, [kind]), (22, 29, [kind])]})
        for _ in range(4):
            fetched(group, two, MaxRecords=20)

    compacted(story)


def test_released_records_are_compacted_away_one_by_one(compacted):
    def story(group, compact):
        one = group.member()
        fetched(group, one, T, MaxRecords=40)
        one.acknowledge({T: [(0, 39, [RELEASE])]})
        compact()
        for _ in range(8):
            got = fetched(group, one, MaxRecords=3, ShareAcquireMode=1)
            if got:
                one.acknowledge({T: [(offset, offset, [ACCEPT]) for offset in got]})

    compacted(story)


# topics that are deleted and created again


def test_a_topic_that_is_created_again_is_another_one(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        fetched(group, one, T)
        one.acknowledge({T: [(0, 4, [ACCEPT])]})
        old = group.ids["t"]
        group.recreate("t", 1)
        group.produce("t", 3)
        one.fetch(MaxRecords=0)
        group.notes.pop()
        group.initialize({"t": 1})
        two = group.member()
        two.fetch(T, MaxWaitMs=2_000)
        two.acknowledge({T: [(0, 2, [ACCEPT])]})
        group.ids["old"] = old
        one.acknowledge({("old", 0): [(5, 9, [ACCEPT])]})

    same(story)


def test_a_topic_that_is_created_again_with_more_partitions(same):
    def story(group):
        group.recreate("t", 2)
        group.produce("t", 3, partition=1)
        group.initialize({"t": 2})
        two = group.member()
        two.fetch(T, ("t", 1), MaxWaitMs=2_000)
        two.fetch(T, ("t", 1), acks={("t", 1): [(0, 2, [ACCEPT])]})

    same(story)
