"""What a consumer group is after a restart: what it was, as long as its members show up."""

from __future__ import annotations

import pytest
from consumer_support import FakeTopics, World

from kbroker.catalog.memory_groups import MemoryGroupStore
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest
from kbroker.coordinators.groups.errors import CoordinatorNotAvailable
from kbroker.coordinators.groups.store import State
from kbroker.pending import Pending


@pytest.fixture
def world() -> World:
    return World(FakeTopics(t=4, u=2))


def test_members_go_on_with_their_epochs_and_partitions(world: World):
    world.join("m", "t", rack_id="r", instance_id="i", server_assignor="range")
    world.join("n", subscribed_topic_regex="[tu]")
    world.heartbeat("m", 2)
    before = world.group()
    world = world.restarted()
    after = world.group()
    assert after.members == before.members
    assert after.target == before.target
    assert after.static_members == before.static_members
    assert (after.group_epoch, after.assignment_epoch, after.state) == (3, 3, before.state)
    done = world.heartbeat("m", 2, world.by_name(after.members["m"].assigned), instance_id="i")
    assert done.member_epoch == 3
    assert world.assigned(world.heartbeat("n", 3)) is not None
    assert world.group().state == "Stable"


def test_a_restart_changes_no_epoch(world: World):
    epoch = world.join("m", subscribed_topic_regex="t|u").member_epoch
    world = world.restarted()
    assert world.heartbeat("m", epoch).member_epoch == epoch
    assert world.group().group_epoch == epoch


def test_members_that_do_not_show_up_within_the_session_timeout_are_removed(world: World):
    world.join("m", "t")
    world = world.restarted()
    world.pass_time(45_000)
    assert world.group().is_empty
    assert world.restarted().group().is_empty


def test_a_revocation_has_its_rebalance_timeout_anew(world: World):
    world.join("m", "t", rebalance_timeout_ms=20_000)
    world.join("n", "t")
    world.heartbeat("m", 2)
    world = world.restarted()
    for _ in range(2):
        world.pass_time(10_000)
        if "m" in world.group().members:
            world.heartbeat("m", 2, {"t": {0, 1, 2, 3}})
    assert list(world.group().members) == ["n"]


def test_topics_that_changed_meanwhile_are_noticed_with_the_first_heartbeat(world: World):
    epoch = world.join("m", "t").member_epoch
    world.topics.grow("t", 5)
    world = world.restarted()
    assert world.assigned(world.heartbeat("m", epoch)) == {"t": set(range(5))}


class SlowStore(MemoryGroupStore):
    """Writes are durable when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Pending[None]] = []

    def save_group(self, group_id: str, type: str, state: State, members) -> Pending[None]:
        super().save_group(group_id, type, state, members)
        self.writes.append(Pending())
        return self.writes[-1]


def first_heartbeat() -> HeartbeatRequest:
    return HeartbeatRequest("g", "m", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"], owned={})


def test_an_answer_comes_when_what_it_says_is_stored():
    store = SlowStore()
    world = World(FakeTopics(t=1), store=store)
    answer = world.consumer_groups.heartbeat(first_heartbeat(), world.now_ms)
    assert isinstance(answer, Pending)
    assert not answer.done
    store.writes[0].resolve(None)
    assert answer.result().member_epoch == 2


def test_a_heartbeat_that_changes_nothing_is_answered_at_once_and_stores_nothing():
    store = SlowStore()
    world = World(FakeTopics(t=1), store=store)
    world.consumer_groups.heartbeat(first_heartbeat(), world.now_ms)
    for _ in range(10):
        assert world.heartbeat("m", 2).member_epoch == 2
    assert len(store.writes) == 1


def test_an_answer_that_could_not_be_stored_asks_the_client_to_try_again():
    store = SlowStore()
    world = World(FakeTopics(t=1), store=store)
    answer = world.consumer_groups.heartbeat(first_heartbeat(), world.now_ms)
    assert isinstance(answer, Pending)
    store.writes[0].fail(OSError("disk full"))
    with pytest.raises(CoordinatorNotAvailable):
        answer.result()


class FailingStore(MemoryGroupStore):
    fails = False

    def save_group(self, group_id: str, type: str, state: State, members) -> Pending[None]:
        if not self.fails:
            return super().save_group(group_id, type, state, members)
        failed: Pending[None] = Pending()
        failed.fail(OSError("disk full"))
        return failed


def test_what_could_not_be_stored_is_stored_with_the_next_heartbeat():
    store = FailingStore()
    world = World(FakeTopics(t=2), store=store)
    world.join("m", "t")
    world.join("n", "t")
    world.pass_time(30_000)
    world.heartbeat("n", 3)
    store.fails = True
    world.pass_time(30_000)  # m is removed, which nobody can be told
    with pytest.raises(CoordinatorNotAvailable):
        world.heartbeat("n", 3)
    store.fails = False
    epoch = world.group().members["n"].member_epoch
    world.heartbeat("n", epoch)
    assert world.restarted().group().members == world.group().members
    assert list(world.group().members) == ["n"]
