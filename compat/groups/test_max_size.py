"""Groups that are full: group.max.size and group.consumer.max.size, on both brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from compat.conftest import SETTINGS, Server, selected_brokers
from compat.groups.test_classic_differential import Story, told_to, two_members
from compat.groups.transcript import Transcript
from compat.groups_consumer.test_differential import told_to as consumers_told_to
from compat.groups_consumer.transcript import ConsumerTranscript
from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import RealKafka

LIMITS = {"group.max.size": "2", "group.consumer.max.size": "2"}


@pytest.fixture(scope="module")
def small_groups() -> Iterator[tuple[Server, Server]]:
    if len(selected_brokers()) < 2:
        pytest.skip("KBROKER_COMPAT selects one broker, a comparison needs both")
    with ExitStack() as stack:
        yield (
            stack.enter_context(KBrokerProcess(SETTINGS | LIMITS)),
            stack.enter_context(RealKafka(SETTINGS | LIMITS)),
        )


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


def a_third_member_of_a_consumer_group(t: ConsumerTranscript) -> None:
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
    tell: Story, unique: Callable[[str], str], small_groups: tuple[Server, Server]
) -> None:
    name = unique("full")
    kbroker, apache = (told_to(server.bootstrap, tell, name) for server in small_groups)
    assert kbroker == apache


def test_a_full_consumer_group_is_the_same_on_both(
    unique: Callable[[str], str], small_groups: tuple[Server, Server]
) -> None:
    name = unique("full")
    kbroker, apache = (
        consumers_told_to(server.bootstrap, a_third_member_of_a_consumer_group, name)
        for server in small_groups
    )
    assert kbroker == apache
