"""Records of a share group that come again and again: in which portions, how often, and how they end."""

from __future__ import annotations

import random

import pytest

from compat.differential.share_fetch.members import fetched

T = ("t", 0)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
SEEDS = range(10)


def singly(offsets: list[int], kind: int) -> dict[tuple[str, int], list[tuple[int, int, list[int]]]]:
    return {T: [(offset, offset, [kind]) for offset in offsets]}


@pytest.mark.parametrize("limit", [2, 3, 5, 6, 10])
def test_records_that_are_always_released(same, limit):
    def story(group):
        group.produce("t", 16)
        one = group.member()
        held = fetched(group, one, T)
        while held:
            one.acknowledge(singly(held, RELEASE))
            held = fetched(group, one)

    same(story, share_delivery_count_limit=str(limit))


def test_often_delivered_records_beside_new_ones(same):
    def story(group):
        group.produce("t", 8, 8, 8)
        one, two = group.member(), group.member()
        for _ in range(4):
            one.acknowledge(singly(fetched(group, one, T, MaxRecords=8), RELEASE))
        for _ in range(8):
            fetched(group, two, T)

    same(story)


@pytest.mark.parametrize("limit", [3, 5, 6])
def test_often_delivered_records_before_others_of_their_batch(same, limit):
    def story(group):
        group.produce("t", 16)
        one = group.member()
        fetched(group, one, T)
        for _ in range((limit + 1) // 2):
            one.acknowledge({T: [(0, 7, [RELEASE])]})
            fetched(group, one)
        one.acknowledge({T: [(8, 15, [RELEASE])]})
        for _ in range(10):
            fetched(group, one)

    same(story, share_delivery_count_limit=str(limit))


def test_records_are_cut_out_of_batches_and_limited(same):
    def story(group):
        group.produce("t", 10, 10, 10)
        one, two = group.member(), group.member()
        fetched(group, one, T, MaxRecords=25, BatchSize=10)
        one.acknowledge({T: [(2, 4, [RELEASE]), (12, 17, [RELEASE]), (29, 29, [RELEASE])]})
        fetched(group, two, T, MaxRecords=5, ShareAcquireMode=1)
        fetched(group, two, MaxRecords=1)
        fetched(group, two, MaxRecords=1)
        fetched(group, two)

    same(story)


def test_a_full_window(same):
    def story(group):
        group.produce("t", 80, 40, 40)
        one, two = group.member(), group.member()
        fetched(group, one, T, MaxRecords=100)
        fetched(group, two, T)
        one.acknowledge({T: [(20, 29, [RELEASE]), (90, 119, [ACCEPT])]})
        fetched(group, two, MaxRecords=3, ShareAcquireMode=1)
        fetched(group, two)
        one.acknowledge({T: [(0, 19, [ACCEPT])]})
        fetched(group, two)
        one.acknowledge({T: [(30, 39, [ACCEPT])]})
        two.acknowledge({T: [(20, 29, [ACCEPT])]})
        fetched(group, two)

    same(story, share_partition_max_record_locks="100")


@pytest.mark.parametrize("seed", SEEDS)
def test_any_order_of_fetches_and_acknowledgements(same, seed):
    """Members that take what they get, and acknowledge some of it, some of it wrongly."""

    def story(group):
        chance = random.Random(seed)
        group.produce("t", *(chance.randint(1, 12) for _ in range(8)))
        members = [group.member() for _ in range(2)]
        held = [fetched(group, member, T, MaxRecords=5) for member in members]
        for _ in range(40):
            at = chance.randrange(2)
            if chance.random() < 0.45:
                limits = {"MaxRecords": chance.randint(1, 20), "BatchSize": chance.randint(1, 20)}
                mode = chance.randrange(2)
                held[at] += fetched(group, members[at], **limits, ShareAcquireMode=mode)
                continue
            if not held[at]:
                continue
            chosen = sorted(chance.sample(held[at], min(len(held[at]), chance.randint(1, 6))))
            kinds = [chance.choice([GAP, ACCEPT, RELEASE, RELEASE, RELEASE, REJECT]) for _ in chosen]
            wrongly = chance.random() < 0.15
            if wrongly:
                chosen[-1] += chance.choice([1, 5, 200])
            acks = [(offset, offset, [kind]) for offset, kind in zip(chosen, kinds, strict=True)]
            if members[at].acknowledge({T: acks})[1] == {"t0": 0}:
                held[at] = [offset for offset in held[at] if offset not in chosen]

    same(story, share_delivery_count_limit=str(3 + seed % 4))
