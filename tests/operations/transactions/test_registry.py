"""Whose transactions are, how many, how long they stay open, and who takes them over."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kbroker.coordinators.transactions.errors import InvalidTransactionTimeout
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch
from kbroker.operations.group_offsets import NewOffset
from kbroker.operations.transactions.errors import (
    NoSuchTransaction,
    OnlyAbort,
    TooManyTransactions,
    TransactionOver,
)
from kbroker.protocol.errors import ApiError, ErrorCode
from tests.support.timed_cluster import TimedCluster

from .support import (
    abort,
    addressed,
    begin,
    commit,
    committed,
    group_offset,
    is_stable,
    publish,
    registry,
    state,
)

MINUTE = 60_000


class Nobody:
    """An authorizer that refuses everything."""

    def authorize(self, *_: object) -> bool:
        return False

    def authorize_by_resource_type(self, *_: object) -> bool:
        return False


# whose, and how many


def test_only_who_began_a_transaction_works_on_it(cluster: TimedCluster) -> None:
    alice, bob = cluster.resources("alice"), cluster.resources("bob")
    transaction = begin(cluster, resources=alice)
    id_ = str(transaction.id)
    assert registry(cluster).get(alice, id_) is transaction
    with pytest.raises((NoSuchTransaction, OnlyAbort)):
        registry(cluster).get(bob, id_)
    for wrong in ("nonsense", "a:b:c", ":0:0", "a:0:99999", "a:-1:0", f"{id_}0", "never:1:1"):
        with pytest.raises(NoSuchTransaction):
            registry(cluster).get(alice, wrong)


def test_there_are_at_most_so_many_at_a_time() -> None:
    cluster = TimedCluster({"kbroker.http.max.transactions": "2"})
    cluster.create("t")
    first, second = begin(cluster), begin(cluster)
    for _ in range(2):
        with pytest.raises(TooManyTransactions):
            begin(cluster)
    commit(cluster, first)
    third = begin(cluster)
    publish(cluster, third, "t", "a")
    abort(cluster, second)
    commit(cluster, third)
    assert len(registry(cluster)) == 0
    assert committed(cluster, "t") == ["a"]


def test_transactional_ids_that_the_broker_makes_up_are_used_again_by_the_same_user(
    cluster: TimedCluster,
) -> None:
    for user in ("alice", "bob", "alice"):
        resources = cluster.resources(user)
        for _ in range(20):
            both = [begin(cluster, resources=resources) for _ in range(2)]
            for each in both:
                cluster.result(each.publish(resources, addressed("t", "a")))
                cluster.result(each.commit(resources))
    known = cluster.broker.transactions.list_transactions((), (), -1, 0)
    owners = Counter(each.transactional_id.rsplit("-", 1)[1] for each in known)
    assert owners == {"User:alice": 18, "User:bob": 18}


def test_the_brokers_own_transactional_ids_cannot_be_chosen(cluster: TimedCluster) -> None:
    with pytest.raises(ApiError, match="the broker's own"):
        begin(cluster, "__kbroker-publish-1-0")


def test_timeouts_are_those_that_kafka_takes(cluster: TimedCluster) -> None:
    assert begin(cluster).timeout_ms == MINUTE
    for wrong in (0, -1, 900_001):
        with pytest.raises(InvalidTransactionTimeout):
            begin(cluster, timeout_ms=wrong)
    short = TimedCluster({"transaction.max.timeout.ms": "5000"})
    assert begin(short).timeout_ms == 5000


# time


def test_one_that_is_not_ended_in_time_is_aborted_and_says_so(cluster: TimedCluster) -> None:
    transaction = begin(cluster, timeout_ms=5_000)
    empty = begin(cluster, timeout_ms=5_000)
    publish(cluster, transaction, "t", "a")
    cluster.scheduler.pass_ms(4_900)
    publish(cluster, transaction, "t", "b")
    assert not is_stable(cluster, "t")
    cluster.scheduler.pass_ms(200)
    assert is_stable(cluster, "t")
    for each in (transaction, empty):
        described = registry(cluster).describe(cluster.resources(), str(each.id))
        assert (described.state, "timeout" in described.reason) == ("CompleteAbort", True)
        with pytest.raises(TransactionOver, match="5000 ms"):
            commit(cluster, each)
        with pytest.raises(TransactionOver, match="5000 ms"):
            publish(cluster, each, "t", "late")
        abort(cluster, each)
    assert committed(cluster, "t") == []
    assert len(registry(cluster)) == 0


def test_one_that_was_ended_does_not_time_out(cluster: TimedCluster) -> None:
    transaction = begin(cluster, timeout_ms=5_000)
    publish(cluster, transaction, "t", "a")
    commit(cluster, transaction)
    cluster.scheduler.pass_ms(20 * MINUTE)
    assert state(cluster, transaction) == "CompleteCommit"
    assert committed(cluster, "t") == ["a"]


# who takes over


def test_a_newer_one_of_the_same_transactional_id_fences_the_older(cluster: TimedCluster) -> None:
    old = begin(cluster, "orders")
    publish(cluster, old, "t", "old")
    new = begin(cluster, "orders")
    publish(cluster, new, "t", "new")
    for call in (commit, lambda *_: publish(cluster, old, "t", "late")):
        with pytest.raises(TransactionOver) as fenced:
            call(cluster, old)
        assert fenced.value.code is ErrorCode.PRODUCER_FENCED
    abort(cluster, old)
    commit(cluster, new)
    assert committed(cluster, "t") == ["new"]


def test_of_two_that_are_begun_at_the_same_time_the_newer_is_open(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    both = [registry(cluster).begin(resources, "orders") for _ in range(2)]
    first, second = sorted((cluster.result(each) for each in both), key=lambda each: each.id)
    with pytest.raises(TransactionOver):
        publish(cluster, first, "t", "older")
    publish(cluster, second, "t", "newer")
    commit(cluster, second)
    assert committed(cluster, "t") == ["newer"]
    assert len(registry(cluster)) == 0


@pytest.mark.parametrize("call", [commit, lambda cluster, old: publish(cluster, old, "t", "late")])
def test_a_kafka_client_with_the_same_transactional_id_fences_it(cluster: TimedCluster, call: object) -> None:
    old = begin(cluster, "orders")
    publish(cluster, old, "t", "old")

    def init() -> ProducerIdAndEpoch:
        now_ms = cluster.scheduler.now_ms
        return cluster.result(cluster.broker.transactions.init_producer_id("orders", MINUTE, None, now_ms))

    with pytest.raises(Exception, match="aborted first"):
        init()
    init()
    for _ in range(2):
        with pytest.raises(TransactionOver) as fenced:
            call(cluster, old)  # type: ignore[operator]
        assert fenced.value.code is ErrorCode.PRODUCER_FENCED
        assert state(cluster, old) == "CompleteAbort"
    assert committed(cluster, "t") == []
    assert is_stable(cluster, "t")


def test_what_an_administrator_aborts_is_over(cluster: TimedCluster) -> None:
    alice, admin = cluster.resources("alice"), cluster.resources("admin")
    transaction = begin(cluster, "orders", resources=alice)
    cluster.result(transaction.publish(alice, addressed("t", "a")))
    cluster.result(registry(cluster).abort(admin, str(transaction.id)))
    assert registry(cluster).describe(alice, str(transaction.id)).state == "CompleteAbort"
    with pytest.raises(TransactionOver, match="administrator"):
        cluster.result(transaction.commit(alice))
    assert committed(cluster, "t") == []


# restarts


def restart(cluster: TimedCluster) -> None:
    """As after a kill: the old broker does nothing any more."""
    cluster.scheduler._due.clear()
    cluster.start()


def test_after_a_restart_a_commit_that_was_done_is_told_and_one_that_was_not_is_refused(
    cluster: TimedCluster,
) -> None:
    done, dropped, left = (begin(cluster, name) for name in ("done", "dropped", "left"))
    own = begin(cluster)
    for each in (done, dropped, left, own):
        publish(cluster, each, "t", each.id.transactional_id)
    cluster.result(left.add_offsets(cluster.resources(), "g", [NewOffset("u", 0, 3)]))
    commit(cluster, done)
    commit(cluster, own)
    abort(cluster, dropped)
    restart(cluster)
    for each in (done, own):
        commit(cluster, each)
        with pytest.raises(TransactionOver):
            abort(cluster, each)
    abort(cluster, dropped)
    with pytest.raises(TransactionOver):
        commit(cluster, dropped)
    with pytest.raises(OnlyAbort):
        commit(cluster, left)
    with pytest.raises(OnlyAbort):
        registry(cluster).get(cluster.resources(), str(left.id))
    for over in (done, dropped):
        with pytest.raises(TransactionOver):
            registry(cluster).get(cluster.resources(), str(over.id))
    assert state(cluster, left) == "Ongoing"
    abort(cluster, left)
    abort(cluster, left)
    assert state(cluster, left) == "CompleteAbort"
    assert committed(cluster, "t") == ["done", own.id.transactional_id]
    assert group_offset(cluster, "g", "u") is None
    assert is_stable(cluster, "t")


def test_one_that_nothing_was_done_in_is_aborted_after_a_restart_as_well(cluster: TimedCluster) -> None:
    empty = begin(cluster, "empty")
    restart(cluster)
    assert state(cluster, empty) == "Empty"
    with pytest.raises(OnlyAbort):
        commit(cluster, empty)
    for _ in range(2):
        abort(cluster, empty)
        assert state(cluster, empty) == "CompleteAbort"


def test_what_a_dead_broker_has_left_open_ends_with_the_next_of_its_id_or_in_time(
    cluster: TimedCluster,
) -> None:
    taken_over, left = begin(cluster, "orders"), begin(cluster)
    publish(cluster, taken_over, "t", "a")
    publish(cluster, left, "u", "b")
    restart(cluster)
    next_one = begin(cluster, "orders")
    assert is_stable(cluster, "t")
    publish(cluster, next_one, "t", "c")
    commit(cluster, next_one)
    assert not is_stable(cluster, "u")
    cluster.scheduler.pass_ms(2 * MINUTE)
    assert is_stable(cluster, "u")
    assert state(cluster, left) == "CompleteAbort"
    with pytest.raises(TransactionOver) as overtaken:
        commit(cluster, taken_over)
    assert overtaken.value.code is ErrorCode.PRODUCER_FENCED
    assert (committed(cluster, "t"), committed(cluster, "u")) == (["c"], [])


def test_nobody_elses_is_found_after_a_restart_either(cluster: TimedCluster) -> None:
    """A transactional id that the broker made up is its user's, without any ACL."""
    alice = cluster.resources("alice")
    transaction = begin(cluster, resources=alice)
    cluster.result(transaction.publish(alice, addressed("t", "a")))
    restart(cluster)
    cluster.broker.authorizer = Nobody()  # type: ignore[assignment]
    alice, bob, id_ = cluster.resources("alice"), cluster.resources("bob"), str(transaction.id)
    for call in (registry(cluster).describe, registry(cluster).abort, registry(cluster).commit):
        with pytest.raises(ApiError) as refusal:
            call(bob, id_)
        assert refusal.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert registry(cluster).describe(alice, id_).state == "Ongoing"
    cluster.result(registry(cluster).abort(alice, id_))
    assert registry(cluster).describe(alice, id_).state == "CompleteAbort"


def test_transactional_ids_of_earlier_runs_are_not_used_again(cluster: TimedCluster) -> None:
    before = begin(cluster)
    publish(cluster, before, "t", "a")
    commit(cluster, before)
    restart(cluster)
    assert begin(cluster).id.transactional_id != before.id.transactional_id
    commit(cluster, before)


def test_the_last_epoch_of_a_producer_id_is_followed_by_another_producer_id(cluster: TimedCluster) -> None:
    begin(cluster, "orders")
    store = cluster.broker.transactions._transactions
    store["orders"] = replace(store["orders"], producer_epoch=32_765)
    last = begin(cluster, "orders")
    assert last.id.producer.producer_epoch == 32_766
    publish(cluster, last, "t", "a")
    commit(cluster, last)
    commit(cluster, last)
    restart(cluster)
    commit(cluster, last)
    assert state(cluster, last) == "CompleteCommit"
    after = begin(cluster, "orders")
    assert after.id.producer.producer_id != last.id.producer.producer_id
    with pytest.raises(TransactionOver):
        commit(cluster, last)


def test_a_broker_that_stops_leaves_nothing_that_is_due(cluster: TimedCluster) -> None:
    begin(cluster, timeout_ms=5_000)
    cluster.broker.close()
    cluster.scheduler.pass_ms(10_000)
    assert len(registry(cluster)) == 1
