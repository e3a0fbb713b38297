"""The server-side assignors: every partition once, loads even, nothing moved for nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.coordinators.groups.assignors import ASSIGNORS
from kbroker.coordinators.groups.assignors.simple import assign_simple
from kbroker.coordinators.groups.assignors.spec import MemberSpec, TopicPartitions

A, B, C = b"A" * 16, b"B" * 16, b"C" * 16
uniform, range_ = ASSIGNORS["uniform"], ASSIGNORS["range"]


def subscribe(
    *topics: bytes, assigned: TopicPartitions | None = None, instance_id: str | None = None
) -> MemberSpec:
    return MemberSpec(frozenset(topics), assigned or {}, instance_id)


def loads(assignment: Mapping[str, TopicPartitions]) -> list[int]:
    return sorted(sum(map(len, topics.values())) for topics in assignment.values())


def again(
    members: Mapping[str, MemberSpec], assignment: Mapping[str, TopicPartitions]
) -> dict[str, MemberSpec]:
    """The same members, with the assignment they have got."""
    return {
        member_id: MemberSpec(spec.subscribed, assignment[member_id], spec.instance_id)
        for member_id, spec in members.items()
    }


def placed(assignment: Mapping[str, TopicPartitions]) -> dict[tuple[bytes, int], str]:
    owners: dict[tuple[bytes, int], str] = {}
    for member_id, topics in assignment.items():
        for topic_id, partitions in topics.items():
            for partition in partitions:
                assert (topic_id, partition) not in owners, "assigned twice"
                owners[topic_id, partition] = member_id
    return owners


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
def test_a_group_without_members_gets_an_empty_assignment(assign):
    assert assign({}, {A: 3}) == {}


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
def test_members_without_subscriptions_get_nothing(assign):
    assert assign({"m": subscribe()}, {}) == {"m": {}}


def test_range_gives_consecutive_partitions_and_the_larger_shares_first():
    assignment = range_({"m2": subscribe(A), "m1": subscribe(A)}, {A: 5})
    assert assignment == {"m1": {A: {0, 1, 2}}, "m2": {A: {3, 4}}}


def test_range_co_partitions_topics_of_equal_size():
    members = {"m1": subscribe(A, B), "m2": subscribe(A, B), "m3": subscribe(A, B)}
    for topics in range_(members, {A: 7, B: 7}).values():
        assert topics[A] == topics[B]


def test_range_leaves_members_empty_when_there_are_more_members_than_partitions():
    assignment = range_({"m1": subscribe(A), "m2": subscribe(A), "m3": subscribe(A)}, {A: 2})
    assert assignment == {"m1": {A: {0}}, "m2": {A: {1}}, "m3": {}}


def test_range_puts_static_members_first_by_instance_id():
    members = {
        "z": subscribe(A, instance_id="i1"),
        "a": subscribe(A),
        "y": subscribe(A, instance_id="i0"),
    }
    assert range_(members, {A: 3}) == {"y": {A: {0}}, "z": {A: {1}}, "a": {A: {2}}}


def test_range_divides_each_topic_among_its_own_subscribers():
    members = {"m1": subscribe(A), "m2": subscribe(A, B), "m3": subscribe(B)}
    assignment = range_(members, {A: 4, B: 2})
    assert assignment == {"m1": {A: {0, 1}}, "m2": {A: {2, 3}, B: {0}}, "m3": {B: {1}}}


def test_uniform_spreads_partitions_evenly():
    assert loads(uniform({f"m{i}": subscribe(A, B) for i in range(3)}, {A: 5, B: 5})) == [3, 3, 4]


def test_uniform_moves_only_what_a_new_member_needs():
    first = uniform({"m1": subscribe(A), "m2": subscribe(A)}, {A: 6})
    members = {
        "m1": subscribe(A, assigned=first["m1"]),
        "m2": subscribe(A, assigned=first["m2"]),
        "m3": subscribe(A),
    }
    second = uniform(members, {A: 6})
    assert second["m1"][A] < first["m1"][A]
    assert second["m2"][A] < first["m2"][A]
    assert loads(second) == [2, 2, 2]


def test_uniform_keeps_the_larger_share_where_it_is():
    members = {
        "m1": subscribe(A, assigned={A: frozenset({0})}),
        "m2": subscribe(A, assigned={A: frozenset({1, 2})}),
    }
    assert uniform(members, {A: 3}) == {"m1": {A: {0}}, "m2": {A: {1, 2}}}


def test_uniform_hands_the_partitions_of_a_lost_member_to_the_others_and_moves_nothing_else():
    members = {f"m{i}": subscribe(A) for i in range(4)}
    first = uniform(members, {A: 12})
    rest = {member_id: spec for member_id, spec in again(members, first).items() if member_id != "m2"}
    second = uniform(rest, {A: 12})
    assert loads(second) == [4, 4, 4]
    assert all(first[member_id][A] < second[member_id][A] for member_id in rest)


@pytest.mark.parametrize("other", [subscribe(A), subscribe(A, B)], ids=["same topics", "other topics"])
def test_uniform_drops_deleted_topics_and_assigns_new_partitions(other):
    members = {"m1": subscribe(A, assigned={C: frozenset({0, 1}), A: frozenset({0, 9})}), "m2": other}
    owners = placed(uniform(members, {A: 3, B: 2} if B in other.subscribed else {A: 3}))
    assert {partition for topic, partition in owners if topic == A} == {0, 1, 2}
    assert owners[A, 0] == "m1"
    assert not any(topic == C for topic, _ in owners)


def test_uniform_balances_across_different_subscriptions():
    members = {"m1": subscribe(A, B), "m2": subscribe(A), "m3": subscribe(B)}
    assert loads(uniform(members, {A: 6, B: 6})) == [4, 4, 4]


def test_uniform_gives_a_topic_with_one_subscriber_to_it_alone():
    assignment = uniform({"m1": subscribe(A), "m2": subscribe(B), "m3": subscribe(B)}, {A: 10, B: 2})
    assert loads(assignment) == [1, 1, 10]
    assert len(assignment["m1"][A]) == 10


counts = st.fixed_dictionaries({A: st.integers(1, 20), B: st.integers(1, 20), C: st.integers(1, 20)})
subscriptions = st.frozensets(st.sampled_from([A, B, C]))
steps = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | subscriptions), min_size=1, max_size=15)


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=150, deadline=None)
@given(counts, steps)
def test_every_partition_has_exactly_one_subscriber_whoever_comes_and_goes(name, counts, steps):
    members: dict[str, MemberSpec] = {}
    for member_id, subscribed in steps:
        if subscribed is None:
            members.pop(member_id, None)
        else:
            old = members.get(member_id)
            members[member_id] = MemberSpec(subscribed, old.assigned if old else {})
        assignment = ASSIGNORS[name](members, counts)
        assert assignment.keys() == members.keys()
        owners = placed(assignment)
        wanted = frozenset[bytes]().union(*(spec.subscribed for spec in members.values()))
        assert owners.keys() == {(topic, partition) for topic in wanted for partition in range(counts[topic])}
        assert all(topic in members[member_id].subscribed for (topic, _), member_id in owners.items())
        members = again(members, assignment)


@settings(max_examples=150, deadline=None)
@given(counts, st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), min_size=1, max_size=20))
def test_uniform_with_equal_subscriptions_is_even_and_moves_the_least(counts, steps):
    members: dict[str, MemberSpec] = {}
    total = sum(counts.values())
    for member_id, stays in steps:
        if stays:
            members.setdefault(member_id, subscribe(A, B, C))
        else:
            members.pop(member_id, None)
        if not members:
            continue
        before = placed({member_id: spec.assigned for member_id, spec in members.items()})
        assignment = uniform(members, counts)
        quota, extra = divmod(total, len(members))
        assert loads(assignment) == [quota] * (len(members) - extra) + [quota + 1] * extra
        held = sorted((sum(map(len, spec.assigned.values())) for spec in members.values()), reverse=True)
        most_kept = sum(min(load, quota + (place < extra)) for place, load in enumerate(held))
        kept = sum(owner == before.get(partition) for partition, owner in placed(assignment).items())
        assert kept == most_kept
        members = again(members, assignment)


@settings(max_examples=150, deadline=None)
@given(counts, st.dictionaries(st.sampled_from("abcdefgh"), subscriptions, min_size=1))
def test_uniform_is_at_rest_when_nothing_changes_and_no_single_move_would_help(counts, subscribed):
    members = {member_id: MemberSpec(topics) for member_id, topics in subscribed.items()}
    assignment = uniform(members, counts)
    assert uniform(again(members, assignment), counts) == assignment
    load = {member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()}
    for (topic, _), owner in placed(assignment).items():
        assert all(load[owner] - load[m] <= 1 for m, spec in members.items() if topic in spec.subscribed)


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_thousand_members_share_ten_thousand_partitions(name, homogeneous):
    topics = [bytes([number]) * 16 for number in range(100)]
    counts = dict.fromkeys(topics, 100)
    members = {
        f"member-{number}": subscribe(*(topics if homogeneous else topics[number % 51 : number % 51 + 50]))
        for number in range(1_000)
    }
    assignment = ASSIGNORS[name](members, counts)
    lost_one = again(members, assignment)
    del lost_one["member-7"]
    ASSIGNORS[name](lost_one, counts)
    assert len(placed(assignment)) == 10_000


@pytest.mark.parametrize("assign", [*ASSIGNORS.values(), assign_simple], ids=[*ASSIGNORS, "simple"])
def test_members_that_all_subscribe_to_very_many_topics_are_not_looked_at_topic_by_topic(assign):
    topics = frozenset(number.to_bytes(16, "big") for number in range(10_000))
    members = {f"m{number}": MemberSpec(topics, {}) for number in range(1_000)}
    counts = dict.fromkeys(topics, 1)
    members = again(members, assign(members, counts))
    begun = time.process_time()
    assign(members, counts)
    assert time.process_time() - begun < 0.4  # a tenth of it, mostly
