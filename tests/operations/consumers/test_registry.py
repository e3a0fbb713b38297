"""Consumers by group and name: whose they are, how many, and how long they stay."""

from __future__ import annotations

import pytest

from kbroker.operations.consumers.errors import ConsumerExists, NoSuchConsumer, TooManyConsumers
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.pending import Pending
from tests.support.timed_cluster import TimedCluster, TimedScheduler

IDLE = ConsumerSettings(auto_offset_reset=OffsetReset.EARLIEST, idle_ms=60_000)


def test_only_who_made_a_consumer_finds_it(cluster: TimedCluster) -> None:
    alice, bob = cluster.resources("alice"), cluster.resources("bob")
    consumer = cluster.broker.consumers.open(alice, "g", IDLE, "c")
    assert cluster.broker.consumers.get(cluster.resources("alice"), "g", "c") is consumer
    assert cluster.broker.consumers.of_group(alice, "g") == [consumer]
    assert cluster.broker.consumers.of_group(bob, "g") == []
    with pytest.raises(NoSuchConsumer):
        cluster.broker.consumers.get(bob, "g", "c")
    with pytest.raises(NoSuchConsumer):
        cluster.broker.consumers.get(alice, "other", "c")


def test_a_name_is_taken_once_in_a_group_and_made_up_where_none_is_given(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    cluster.broker.consumers.open(resources, "g", IDLE, "c")
    with pytest.raises(ConsumerExists):
        cluster.broker.consumers.open(resources, "g", IDLE, "c")
    cluster.broker.consumers.open(resources, "other", IDLE, "c")
    names = {cluster.broker.consumers.open(resources, "g", IDLE).name for _ in range(3)}
    assert len(names) == 3


def test_there_are_at_most_so_many() -> None:
    cluster = TimedCluster({"kbroker.http.max.consumers": "2"})
    resources = cluster.resources()
    first = cluster.broker.consumers.open(resources, "g", IDLE)
    cluster.broker.consumers.open(resources, "g", IDLE)
    with pytest.raises(TooManyConsumers):
        cluster.broker.consumers.open(resources, "g", IDLE)
    cluster.result(first.close())
    cluster.broker.consumers.open(resources, "g", IDLE)
    cluster.broker.close()
    assert len(cluster.broker.consumers) == 0


def test_an_idle_one_expires_and_one_that_is_used_does_not(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    cluster.create("t")
    idle = cluster.broker.consumers.open(resources, "g", IDLE, "idle")
    used = cluster.broker.consumers.open(resources, "g", IDLE, "used")
    lasting = cluster.broker.consumers.open(resources, "g", ConsumerSettings(idle_ms=None), "lasting")
    used.subscribe(resources, ["t"])
    for _ in range(3):
        cluster.scheduler.pass_ms(40_000)
        used.touch()
    assert idle.closed
    assert not used.closed
    assert not lasting.closed
    with pytest.raises(NoSuchConsumer):
        cluster.broker.consumers.get(resources, "g", "idle")
    waiting = used.poll(resources, max_wait_ms=200_000)
    cluster.scheduler.pass_ms(190_000)
    assert isinstance(waiting, Pending)
    assert not waiting.done, "who waits in a poll is not idle"
    cluster.scheduler.pass_ms(80_000)
    assert used.closed


def test_a_broker_that_stops_takes_its_consumers_out_of_their_groups(cluster: TimedCluster) -> None:
    cluster.create("t")
    consumer = cluster.broker.consumers.open(cluster.resources(), "g", IDLE, "c")
    consumer.subscribe(cluster.resources(), ["t"])
    cluster.result(consumer.assigned(max_wait_ms=1000))
    cluster.broker.close()
    broker = cluster.start()
    assert broker.groups.groups["g"].is_empty
    with pytest.raises(NoSuchConsumer):
        broker.consumers.get(cluster.resources(), "g", "c")


def test_nobody_waits_for_the_consumers_of_a_process_that_was_killed(cluster: TimedCluster) -> None:
    cluster.create("t")
    cluster.produce("t", 0, b"x")
    resources = cluster.resources()
    lost = cluster.broker.consumers.open(resources, "g", IDLE, "c")
    lost.subscribe(resources, ["t"])
    assert len(cluster.result(lost.poll(resources, max_wait_ms=1000))) == 1
    cluster.scheduler = TimedScheduler(cluster.scheduler.now_ms)  # nothing of the first goes on
    cluster.start()
    resources = cluster.resources()
    new = cluster.broker.consumers.open(resources, "g", IDLE, "c")
    new.subscribe(resources, ["t"])
    cluster.scheduler.pass_ms(1000)
    assert len(cluster.broker.groups.groups["g"].members) == 1
    assert len(cluster.result(new.poll(resources, max_wait_ms=1000))) == 1
