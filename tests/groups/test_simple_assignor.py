"""The assignor of share groups: every partition as often as needed, loads even, nothing moved for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import assume, given
from hypothesis import strategies as st

from kbroker.coordinators.groups.assignors.simple import assign_simple
from kbroker.coordinators.groups.assignors.spec import MemberSpec, TopicPartitions
from tests.groups.test_assignors import A, B, C, again, loads, subscribe

Members = dict[str, MemberSpec]


def holders(assignment: Mapping[str, TopicPartitions]) -> Counter[tuple[bytes, int]]:
    return Counter(
        (topic_id, partition)
        for topics in assignment.values()
        for topic_id, partitions in topics.items()
        for partition in partitions
    )


def test_nobody_and_nothing():
    assert assign_simple({}, {A: 3}) == {}
    assert assign_simple({"m": subscribe()}, {}) == {"m": {}}
    assert assign_simple({"m": subscribe(A)}, {A: 0}) == {"m": {}}


def test_few_members_divide_the_partitions():
    assignment = assign_simple({"m": subscribe(A), "n": subscribe(A)}, {A: 5})
    assert loads(assignment) == [2, 3]
    assert set(holders(assignment).values()) == {1}


def test_many_members_share_them():
    assignment = assign_simple({f"m{n}": subscribe(A) for n in range(7)}, {A: 3})
    assert set(holders(assignment).values()) == {3}
    assert loads(assignment) == [1, 1, 1, 1, 1, 2, 2]


def test_differing_subscriptions_are_shared_out_topic_by_topic():
    members = {"m": subscribe(A, B), "n": subscribe(A), "o": subscribe(B)}
    assignment = assign_simple(members, {A: 2, B: 1})
    assert holders(assignment) == {(A, 0): 1, (A, 1): 1, (B, 0): 2}
    assert assignment["o"] == {B: {0}}


def test_who_has_less_in_all_gets_the_larger_share_of_a_topic():
    members = {"m": subscribe(A, B), "n": subscribe(A, B), "o": subscribe(B)}
    assignment = assign_simple(members, {A: 2, B: 4})
    assert len(assignment["o"][B]) == 2


def test_a_member_that_comes_takes_no_more_than_its_share():
    first = {f"m{n}": subscribe(A) for n in range(3)}
    before = assign_simple(first, {A: 12})
    after = assign_simple({**again(first, before), "new": subscribe(A)}, {A: 12})
    for member_id in first:
        assert after[member_id][A] < before[member_id][A]
    assert len(after["new"][A]) == 3


def test_a_member_that_goes_costs_the_others_nothing():
    first = {f"m{n}": subscribe(A) for n in range(4)}
    before = assign_simple(first, {A: 12})
    del first["m1"]
    after = assign_simple(again(first, before), {A: 12})
    for member_id in first:
        assert after[member_id][A] > before[member_id][A]


@st.composite
def groups(draw: st.DrawFn, *, same: bool) -> tuple[Members, dict[bytes, int]]:
    """Members with any target, of topics and partitions that may be gone."""
    counts = {topic: draw(st.integers(1, 6)) for topic in (A, B)}
    subscribed = draw(st.sets(st.sampled_from((A, B)), min_size=1))
    held = st.dictionaries(
        st.sampled_from((A, B, C)), st.frozensets(st.integers(0, 8), min_size=1), max_size=3
    )
    members: Members = {}
    for number in range(draw(st.integers(1, 12))):
        wanted = subscribed if same else draw(st.sets(st.sampled_from((A, B))))
        members[f"m{number}"] = MemberSpec(frozenset(wanted), draw(held))
    return members, counts


@given(groups(same=True))
def test_whatever_they_held_sharing_is_exact_and_loads_are_even(group):
    members, counts = group
    assignment = assign_simple(members, counts)
    (subscribed,) = {spec.subscribed for spec in members.values()}
    partitions = sum(counts[topic] for topic in subscribed)
    sharing = -(-len(members) // partitions)
    found = holders(assignment)
    assert len(found) == partitions
    assert set(found.values()) == {sharing}
    assert max(loads(assignment)) - min(loads(assignment)) <= 1


@given(groups(same=False))
def test_with_differing_subscriptions_each_topic_is_even(group):
    members, counts = group
    assume(len({spec.subscribed for spec in members.values()}) > 1)
    assignment = assign_simple(members, counts)
    for topic_id, count in counts.items():
        subscribers = [member_id for member_id, spec in members.items() if topic_id in spec.subscribed]
        shares = [len(assignment[member_id].get(topic_id, ())) for member_id in subscribers]
        if subscribers:
            assert sum(shares) == -(-len(subscribers) // count) * count
            assert max(shares) - min(shares) <= 1
    for member_id, topics in assignment.items():
        assert topics.keys() <= members[member_id].subscribed


@given(st.booleans().flatmap(lambda same: groups(same=same)))
def test_nothing_moves_when_nothing_has_changed(group):
    members, counts = group
    assignment = assign_simple(members, counts)
    assert assign_simple(again(members, assignment), counts) == assignment
