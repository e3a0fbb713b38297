"""Groups that are full: group.max.size and group.consumer.max.size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat.differential.groups.test_classic import two_members
from compat.differential.groups.transcript import CLASSIC, CONSUMER, Story, Transcript, told_to
from compat.differential.pair import Pair
from compat.harness.brokers import SETTINGS, Server, running

LIMITS = {"group.max.size": "2", "group.consumer.max.size": "2"}


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Server, ...]]:
    with running(SETTINGS | LIMITS) as servers:
        yield servers


def a_third_member_of_a_stable_classic_group(t: Transcript) -> None:
    leader, follower = two_members(t)
    t.join("three")
    t.join("three", version=3)
    t.join("three", GroupInstanceId="static")
    t.heartbeat("one", leader, 2)
    t.heartbeat("two", follower, 2)
    t.leave("two", {"MemberId": follower})
    t.new_member("three")
    t.describe()


def a_third_member_before_the_two_have_synced(t: Transcript) -> None:
    leader = t.settled_member("one")
    second = t.new_member("two")
    t.start_join("two", member_id=second)
    t.wait_for_rebalance("one", leader, 1)
    t.join("one", member_id=leader)
    t.receive("two")
    t.join("three")
    t.describe()


def a_third_member_of_a_consumer_group(t: Transcript) -> None:
    t.join_consumer("one", "t")
    t.join_consumer("two", "t")
    t.join_consumer("three", "t")
    t.beat("two", -1)
    t.join_consumer("three", "t")


@pytest.mark.parametrize(
    "tell",
    [a_third_member_of_a_stable_classic_group, a_third_member_before_the_two_have_synced],
    ids=lambda tell: tell.__name__,
)
def test_a_full_classic_group_is_the_same_on_both(
    tell: Story, unique: Callable[[str], str], pair: Pair
) -> None:
    name = unique("full")
    pair.same(lambda side: told_to(side.server.bootstrap, tell, name, CLASSIC))


def test_a_full_consumer_group_is_the_same_on_both(unique: Callable[[str], str], pair: Pair) -> None:
    name = unique("full")
    pair.same(lambda side: told_to(side.server.bootstrap, a_third_member_of_a_consumer_group, name, CONSUMER))
