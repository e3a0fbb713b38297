"""Acknowledgements, with a fetch and alone: what they do to records, and what is wrong with them."""

from __future__ import annotations

import pytest

T = ("t", 0)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def with_fetch(member, acks, **options):
    return member.fetch(acks=acks, **options)


def alone(member, acks, **options):
    return member.acknowledge(acks, **options)


@pytest.fixture(params=[with_fetch, alone], ids=["with_fetch", "alone"])
def acknowledge(request):
    return request.param


def only(acknowledge):
    """Nothing is fetched: Kafka's fetch does not wait until a release is stored, and gets it or not."""
    return {"MaxRecords": 0} if acknowledge is with_fetch else {}


@pytest.mark.parametrize("type_", [GAP, ACCEPT, RELEASE, REJECT])
@pytest.mark.parametrize("version", [1, 2])
def test_all_records_get_one_type(same, acknowledge, type_, version):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        one.fetch(T, version=version)
        acknowledge(one, {T: [(0, 9, [type_])]}, version=version, **only(acknowledge))
        group.produce("t", 5)
        one.fetch(version=version)
        two.fetch(T, version=version)

    same(story)


def test_each_record_gets_its_own_type(same, acknowledge):
    def story(group):
        group.produce("t", 5, 5)
        one, two = group.member(), group.member()
        one.fetch(T)
        types = [ACCEPT, REJECT, RELEASE, GAP, RELEASE, RELEASE, ACCEPT, REJECT, ACCEPT, RELEASE]
        acknowledge(one, {T: [(0, 9, types)]}, **only(acknowledge))
        two.fetch(T)
        two.fetch()

    same(story)


WRONG = {
    "first behind last": [(5, 4, [ACCEPT])],
    "not in order": [(5, 9, [ACCEPT]), (0, 4, [ACCEPT])],
    "sharing an edge": [(0, 5, [ACCEPT]), (5, 9, [ACCEPT])],
    "overlapping": [(0, 5, [ACCEPT]), (3, 9, [ACCEPT])],
    "no types": [(0, 9, [])],
    "too few types": [(0, 9, [ACCEPT] * 9)],
    "too many types": [(0, 9, [ACCEPT] * 11)],
    "unknown type": [(0, 9, [5])],
    "negative type": [(0, 9, [-1])],
    "renewal that is not announced": [(0, 9, [RENEW])],
    "one renewal among others": [(0, 2, [ACCEPT, RENEW, ACCEPT])],
    "behind the end": [(10, 19, [ACCEPT])],
    "over the end": [(5, 19, [ACCEPT])],
    "one bad batch behind a good one": [(0, 4, [ACCEPT]), (5, 19, [ACCEPT])],
    "negative offsets": [(-5, -1, [ACCEPT])],
    "from below to the first": [(-5, 0, [ACCEPT])],
    "one type for one offset": [(3, 3, [ACCEPT])],
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_acknowledgements(same, acknowledge, what, version):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T, version=version)
        acknowledge(one, {T: WRONG[what]}, version=version)
        one.acknowledge({T: [(0, 9, [ACCEPT])]}, version=version)

    same(story)


def test_a_record_is_acknowledged_once_and_by_its_holder(same, acknowledge):
    def story(group):
        group.produce("t", 10, 10)
        one, two = group.member(), group.member()
        one.fetch(T, MaxRecords=10)
        two.fetch(T, MaxRecords=10)
        acknowledge(one, {T: [(0, 4, [ACCEPT])]})
        acknowledge(one, {T: [(0, 4, [ACCEPT])]})
        acknowledge(one, {T: [(3, 6, [ACCEPT])]})
        acknowledge(one, {T: [(10, 19, [ACCEPT])]})
        acknowledge(one, {T: [(5, 14, [ACCEPT])]})
        acknowledge(two, {T: [(10, 19, [RELEASE])]}, **only(acknowledge))
        acknowledge(two, {T: [(5, 9, [ACCEPT])]})
        acknowledge(one, {T: [(5, 9, [ACCEPT])]})
        acknowledge(one, {T: [(0, 9, [ACCEPT])]})

    same(story)


def test_partitions_do_not_depend_on_each_other(same, acknowledge):
    def story(group):
        group.produce("t", 10)
        group.produce("u", 10, partition=1)
        one = group.member()
        one.fetch(T, ("u", 1))
        acks = {
            T: [(0, 9, [ACCEPT])],
            ("u", 0): [(0, 9, [ACCEPT])],
            ("u", 1): [(0, 19, [ACCEPT])],
            ("u", 7): [(0, 9, [ACCEPT])],
            ("x", 0): [(0, 9, [ACCEPT])],
        }
        if acknowledge is alone:
            alone(one, acks)
        acknowledge(one, {("u", 1): [(0, 9, [ACCEPT])]})

    same(story)


def test_nothing_is_acknowledged_where_nothing_is_listed(same, acknowledge):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        acknowledge(one, {})
        acknowledge(one, {T: []})
        acknowledge(one, {T: [(0, 4, [ACCEPT])], ("u", 0): []})
        acknowledge(one, {T: [], ("x", 0): [], ("u", 7): []}) if acknowledge is alone else None

    same(story)


def test_a_record_is_archived_with_its_last_delivery(same):
    def story(group):
        group.produce("t", 3)
        one = group.member()
        one.fetch(T)
        for _ in range(12):
            one.fetch()
            got = group.notes[-1][1][1].get("t0", {}).get("acquired", [])
            if got:
                one.acknowledge({T: [(first, last, [RELEASE]) for first, last, _ in got]})
            else:
                one.acknowledge({T: [(0, 2, [RELEASE])]})
        group.produce("t", 1)
        one.fetch()

    same(story, share_delivery_count_limit="3")


def test_a_lock_that_is_renewed(same, acknowledge):
    def story(group):
        group.produce("t", 10)
        one, two = group.member(), group.member()
        none = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 0, "MaxRecords": 0}
        options = {"IsRenewAck": True, **(none if acknowledge is with_fetch else {})}
        one.fetch(T)
        acknowledge(one, {T: [(0, 9, [RENEW])]}, **options)
        acknowledge(one, {T: [(0, 4, [RENEW, ACCEPT, RENEW, RELEASE, RENEW])]}, **options)
        acknowledge(one, {T: [(0, 4, [RENEW])]}, **options)
        acknowledge(one, {T: [(0, 4, [RENEW])]}, **options, version=2)
        two.fetch(T)
        group.configure(share_renew_acknowledge_enable="false")
        acknowledge(one, {T: [(5, 9, [RENEW])]}, **options)
        acknowledge(one, {T: [(5, 9, [ACCEPT])]}, **options)

    same(story)


@pytest.mark.parametrize("field", ["MaxWaitMs", "MinBytes", "MaxBytes", "MaxRecords", "BatchSize"])
def test_what_renews_cannot_fetch(same, field):
    def story(group):
        group.produce("t", 10)
        one = group.member()
        one.fetch(T)
        none = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 0, "MaxRecords": 0, "BatchSize": 0}
        one.fetch(acks={T: [(0, 9, [RENEW])]}, IsRenewAck=True, **{**none, field: 1})
        one.fetch(epoch=1)

    same(story)
