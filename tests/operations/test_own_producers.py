"""The broker's own transactional producers, used again and again."""

from __future__ import annotations

from kbroker.operations.own_producers import OwnProducer
from tests.support.timed_cluster import TimedCluster

WEEK_MS = 7 * 24 * 3600 * 1000


def take(cluster: TimedCluster) -> OwnProducer:
    steps = cluster.broker.publishing.own_producers.take(cluster.resources())
    return cluster.result(cluster.broker.long_requests.run(steps))


def test_one_that_was_given_back_is_used_again() -> None:
    cluster = TimedCluster()
    first, second = take(cluster), take(cluster)
    assert first.transactional_id != second.transactional_id
    cluster.broker.publishing.own_producers.give_back(first, first.producer)
    assert take(cluster).producer == first.producer


def test_one_that_the_coordinator_may_have_forgotten_begins_anew() -> None:
    cluster = TimedCluster()
    first = take(cluster)
    cluster.broker.publishing.own_producers.give_back(first, first.producer)
    cluster.scheduler.pass_ms(2 * WEEK_MS)
    assert cluster.broker.transactions.list_transactions((), (), -1, 0) == []
    again = take(cluster)
    assert again.transactional_id == first.transactional_id
    assert again.producer != first.producer
