"""How soon members are asked to come again, and how soon a group settles because of it."""

from __future__ import annotations

import random
from heapq import heappop, heappush

import pytest
from consumer_support import FakeTopics, Names, World

from kbroker.coordinators.groups.consumer.settings import ConsumerGroupSettings
from kbroker.coordinators.groups.heartbeat_pacing import (
    SETTLING_MS,
    SHORT_INTERVAL_MS,
    STUCK_INTERVAL_MS,
    assignment_interval_ms,
    heartbeat_interval_ms,
)

CONFIGURED = 5_000
ROUND_TRIP_MS = 5
REVOKE_MS = 20


def test_the_interval_is_short_while_the_group_changes_and_the_configured_one_afterwards():
    world = World(FakeTopics(t=4))
    result = world.join("m", "t")
    assert result.heartbeat_interval_ms == SHORT_INTERVAL_MS
    world.pass_time(SETTLING_MS - 1)
    assert world.heartbeat("m", 2).heartbeat_interval_ms == SHORT_INTERVAL_MS
    world.pass_time(1)
    assert world.heartbeat("m", 2).heartbeat_interval_ms == CONFIGURED
    world.join("n", "t")
    assert world.heartbeat("m", 2).heartbeat_interval_ms == SHORT_INTERVAL_MS


def test_a_configured_interval_that_is_shorter_is_kept():
    assert heartbeat_interval_ms(50, members=1, stable=False, unchanged_for_ms=0) == 50


def test_a_group_that_waits_for_a_slow_member_asks_less_often():
    interval = heartbeat_interval_ms(CONFIGURED, members=3, stable=False, unchanged_for_ms=SETTLING_MS)
    assert interval == STUCK_INTERVAL_MS


@pytest.mark.parametrize(
    ("members", "interval"), [(10, 100), (100, 200), (1_000, 2_000), (10_000, CONFIGURED)]
)
def test_the_short_interval_grows_with_the_group(members: int, interval: int):
    assert heartbeat_interval_ms(CONFIGURED, members=members, stable=False, unchanged_for_ms=0) == interval


def test_a_target_is_computed_less_often_the_more_it_costs():
    assert assignment_interval_ms(None, members=10, partitions=20) == 100
    assert assignment_interval_ms(None, members=1_000, partitions=10_000) == 550
    assert assignment_interval_ms(0, members=1_000, partitions=10_000) == 0


class Client:
    """A client that does as it is told, after the time that takes."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.owned: Names = {}
        self.interval_ms = 0

    def heartbeat(self, world: World) -> int:
        """Returns after how long the next one is due."""
        if self.epoch == 0:
            result = world.join(self.member_id, "t")
        else:
            result = world.heartbeat(self.member_id, self.epoch, self.owned)
        self.epoch = result.member_epoch
        assignment = world.assigned(result)
        if assignment is not None and assignment != self.owned:
            self.owned = assignment
            return REVOKE_MS  # what it had to give up is given up, and it says so without delay
        return result.heartbeat_interval_ms


def simulate(
    world: World, starts: dict[str, int], until_ms: int, start_ms: int
) -> tuple[dict[str, Client], int]:
    """Run clients that start at the given times; returns them and when the last assignment changed."""
    clients = {member_id: Client(member_id) for member_id in starts}
    queue: list[tuple[int, str]] = []
    for member_id, at_ms in starts.items():
        heappush(queue, (at_ms, member_id))
    settled_ms = start_ms
    while queue and queue[0][0] < until_ms:
        at_ms, member_id = heappop(queue)
        world.pass_time(at_ms - world.now_ms)
        before = clients[member_id].owned
        due_ms = clients[member_id].heartbeat(world)
        if clients[member_id].owned != before:
            settled_ms = at_ms + ROUND_TRIP_MS
        heappush(queue, (at_ms + ROUND_TRIP_MS + due_ms, member_id))
    return clients, settled_ms


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("members", "limit_ms"), [(10, 1_000), (100, 2_000)])
def test_members_that_start_together_settle_quickly(members: int, limit_ms: int, seed: int):
    start_ms = 1_000_000
    dice = random.Random(seed)
    world = World(FakeTopics(t=2 * members), ConsumerGroupSettings())
    starts = {f"m{number}": start_ms + dice.randrange(300) for number in range(members)}
    clients, settled_ms = simulate(world, starts, start_ms + 30_000, start_ms)
    assert settled_ms - max(starts.values()) < limit_ms
    assert all(len(client.owned["t"]) == 2 for client in clients.values())
    assert world.group().state == "Stable"


@pytest.mark.parametrize("seed", range(20))
def test_a_join_into_a_settled_group_takes_one_heartbeat_interval_and_half_a_second(seed: int):
    start_ms = 1_000_000
    dice = random.Random(seed)
    world = World(FakeTopics(t=40), ConsumerGroupSettings())
    starts = {f"m{number}": start_ms + dice.randrange(300) for number in range(9)}
    late_ms = start_ms + 30_000 + dice.randrange(5_000)
    starts["late"] = late_ms
    clients, settled_ms = simulate(world, starts, late_ms + 20_000, start_ms)
    assert settled_ms - late_ms <= CONFIGURED + 500
    assert len(clients["late"].owned["t"]) == 4
    assert world.group().state == "Stable"
