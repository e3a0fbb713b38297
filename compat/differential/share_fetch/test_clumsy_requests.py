"""Share fetches and acknowledgements that no client would send."""

from __future__ import annotations

import pytest

from compat.harness.waiting import eventually

T = ("t", 0)
ACCEPT, RELEASE = 1, 2
MOST = 2**63 - 1
LEAST = -(2**63)


@pytest.mark.parametrize("mode", [2, 7, 127, -128])
def test_an_acquire_mode_that_is_none(same, mode):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, ShareAcquireMode=mode)
        group.produce("t", 10)
        one.fetch(T, epoch=0, MaxRecords=20)
        one.fetch(ShareAcquireMode=mode, acks={T: [(0, 4, [ACCEPT])]})
        eventually(group.lag, lambda lag: lag == 15)  # what was acknowledged with it is
        one.acknowledge({T: [(5, 19, [ACCEPT])]})
        one.fetch()
        one.fetch(epoch=-1, ShareAcquireMode=mode)

    same(story)


@pytest.mark.parametrize("value", [-1, -(2**31)])
@pytest.mark.parametrize("field", ["MaxWaitMs", "MinBytes", "BatchSize"])
def test_limits_below_nothing(same, field, value):
    """Left out: MaxBytes, an unknown error in Kafka; MaxRecords, for which an empty partition is told."""

    def story(group):
        group.produce("t", 4, 4)
        one = group.member()
        one.fetch(T, **{field: value})
        one.fetch(**{field: value})
        one.fetch(T)

    same(story)


@pytest.mark.parametrize("field", ["MinBytes", "MaxBytes", "MaxRecords", "BatchSize"])
def test_limits_as_high_as_can_be(same, field):
    def story(group):
        group.produce("t", 4, 4)
        one = group.member()
        one.fetch(T, **{field: 2**31 - 1})
        one.fetch(T)

    same(story)


RANGES = {
    "all": (0, MOST, [ACCEPT]),
    "everything": (LEAST, MOST, [ACCEPT]),
    "far beyond": (MOST, MOST, [ACCEPT]),
    "far below": (LEAST, LEAST, [ACCEPT]),
    "far below to the start": (LEAST, 0, [ACCEPT]),
    "far below to below": (LEAST, -1, [ACCEPT]),
    "backwards": (MOST, LEAST, [ACCEPT]),
    "two types for everything": (LEAST, MOST, [ACCEPT, ACCEPT]),
    "two types for the end": (MOST - 1, MOST, [ACCEPT, ACCEPT]),
}


@pytest.mark.parametrize("what", RANGES)
def test_ranges_of_offsets_without_end(same, what):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        one.acknowledge({T: [RANGES[what]]})
        one.fetch(acks={T: [RANGES[what]]}, MaxRecords=0)
        one.acknowledge({T: [(0, 9, [ACCEPT])]})

    same(story)


def partition(number, *acks):
    batches = [
        {"FirstOffset": first, "LastOffset": last, "AcknowledgeTypes": list(types)}
        for first, last, types in acks
    ]
    return {"PartitionIndex": number, "AcknowledgementBatches": batches}


def test_a_partition_is_listed_twice(same):
    """Not in the first fetch, which Kafka fails with an unknown error."""

    def story(group):
        group.produce("t", 10)
        t = group.ids["t"]
        one = group.member()
        one.fetch(T)
        one.fetch(Topics=[{"TopicId": t, "Partitions": [partition(0), partition(0)]}])
        group.produce("t", 1)
        one.fetch(Topics=[{"TopicId": t, "Partitions": [partition(0)]}] * 2)
        first, second = partition(0, (0, 1, [ACCEPT])), partition(0, (2, 3, [ACCEPT]))
        one.fetch(Topics=[{"TopicId": t, "Partitions": [first, second]}], MaxRecords=0)
        one.acknowledge({T: [(0, 1, [ACCEPT])]})
        one.acknowledge({T: [(2, 3, [ACCEPT])]})
        first, second = partition(0, (4, 5, [ACCEPT])), partition(0, (6, 7, [ACCEPT]))
        one.acknowledge(Topics=[{"TopicId": t, "Partitions": [first, second]}])
        one.acknowledge({T: [(4, 5, [ACCEPT])]})
        one.acknowledge({T: [(6, 7, [ACCEPT])]})
        first, second = partition(0, (8, 8, [ACCEPT])), partition(0, (9, 9, [ACCEPT]))
        one.acknowledge(Topics=[{"TopicId": t, "Partitions": [each]} for each in (first, second)])
        one.acknowledge({T: [(8, 8, [ACCEPT])]})
        one.acknowledge({T: [(9, 9, [ACCEPT])]})

    same(story)


def test_a_partition_is_forgotten_twice_or_never_was_known(same):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, MaxRecords=0)
        one.fetch(T, forget=[T, T, ("t", 7), ("x", 0), ("t", -1)])
        one.fetch()
        one.fetch(T)

    same(story)


@pytest.mark.parametrize("number", [-1, 2**31 - 1, -(2**31)])
def test_partitions_that_cannot_be(same, number):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, ("t", number))
        one.acknowledge({T: [(0, 9, [ACCEPT])], ("t", number): [(0, 9, [ACCEPT])]})

    same(story)


def test_no_partitions_at_all(same):
    def story(group):
        one = group.member()
        one.fetch(MaxWaitMs=500)
        one.fetch(MaxWaitMs=500)
        one.fetch(Topics=[{"TopicId": group.ids["t"], "Partitions": []}])
        one.acknowledge(Topics=[{"TopicId": group.ids["t"], "Partitions": []}])
        one.acknowledge()

    same(story)


@pytest.mark.parametrize("number", [1_000, 30_000])
def test_many_acknowledgements(same, number):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        one.acknowledge({T: [(offset, offset, [ACCEPT]) for offset in range(number)]})
        one.acknowledge({T: [(0, 0, [ACCEPT]) for offset in range(number)]})
        one.acknowledge({T: [(-2, -2, [ACCEPT]) for offset in range(number)]})
        one.acknowledge({T: [(0, number - 1, [ACCEPT] * number)]})
        codes = one.acknowledge({("t", each): [(0, 0, [ACCEPT])] for each in range(1, number)})[1]
        group.notes[-1] = [len(codes), sorted(set(codes.values()))]
        one.acknowledge({T: [(0, 9, [ACCEPT])]})

    same(story)
