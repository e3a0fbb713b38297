"""A transaction over several calls: what readers see, how it ends, and what a failure makes of it."""

from __future__ import annotations

import pytest

from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.errors import IllegalGeneration, UnknownMemberId
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_offsets import Member, NewOffset
from kbroker.operations.transactions.errors import OnlyAbort, TransactionOver
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records.compression import ZSTD
from kbroker.storage.errors import DiskFull, RecordTooLarge
from tests.support.timed_cluster import TimedCluster

from .support import (
    abort,
    addressed,
    begin,
    commit,
    committed,
    group_offset,
    is_stable,
    offsets,
    publish,
    registry,
    state,
)


def test_records_of_several_calls_show_with_the_commit_and_not_before(cluster: TimedCluster) -> None:
    transaction = begin(cluster)
    assert state(cluster, transaction) == "Empty"
    assert offsets(publish(cluster, transaction, "t", "a", "b")) == [0, 1]
    assert offsets(publish(cluster, transaction, "t", "c")) == [2]
    publish(cluster, transaction, "t", "d", partition=1)
    publish(cluster, transaction, "u", "e")
    assert state(cluster, transaction) == "Ongoing"
    assert committed(cluster, "t") == committed(cluster, "u") == []
    commit(cluster, transaction)
    assert state(cluster, transaction) == "CompleteCommit"
    assert committed(cluster, "t") == ["a", "b", "c"]
    assert committed(cluster, "t", 1) == ["d"]
    assert committed(cluster, "u") == ["e"]


def test_an_aborted_one_shows_nothing(cluster: TimedCluster) -> None:
    transaction = begin(cluster)
    publish(cluster, transaction, "t", "a")
    abort(cluster, transaction)
    assert state(cluster, transaction) == "CompleteAbort"
    assert committed(cluster, "t") == []
    assert is_stable(cluster, "t")


def test_an_end_that_is_asked_for_again_is_answered_again_and_the_other_end_is_refused(
    cluster: TimedCluster,
) -> None:
    kept, dropped = begin(cluster), begin(cluster)
    publish(cluster, kept, "t", "a")
    for _ in range(3):
        commit(cluster, kept)
        abort(cluster, dropped)
    with pytest.raises(TransactionOver, match="committed already"):
        abort(cluster, kept)
    with pytest.raises(TransactionOver, match="aborted"):
        commit(cluster, dropped)
    with pytest.raises(TransactionOver):
        publish(cluster, kept, "t", "late")
    assert committed(cluster, "t") == ["a"]


def test_one_with_nothing_in_it_ends_without_a_trace(cluster: TimedCluster) -> None:
    transaction = begin(cluster, "mine")
    commit(cluster, transaction)
    commit(cluster, transaction)
    assert cluster.broker.find_log("t", 0).log_end_offset == 0
    # The transactional id is as free as before.
    after = begin(cluster, "mine")
    publish(cluster, after, "t", "a")
    commit(cluster, after)
    assert committed(cluster, "t") == ["a"]


def test_many_records_are_compressed_and_split_into_batches(cluster: TimedCluster) -> None:
    cluster.broker.topics.create("small", 1, {"max.message.bytes": "500"}, 0).result()
    transaction = begin(cluster)
    values = [f"{number:030}" for number in range(100)]
    records = addressed("small", *values)
    published = cluster.result(transaction.publish(cluster.resources(), records, codec=ZSTD))
    assert offsets(published) == list(range(100))
    publish(cluster, transaction, "small", "last")
    commit(cluster, transaction)
    assert committed(cluster, "small") == [*values, "last"]


def test_calls_that_come_together_are_done_in_their_order(cluster: TimedCluster) -> None:
    transaction = begin(cluster)
    resources = cluster.resources()
    calls: list[Pending[object]] = [
        transaction.publish(resources, addressed("t", str(number)))  # type: ignore[list-item]
        for number in range(20)
    ]
    calls.append(transaction.commit(resources))  # type: ignore[arg-type]
    for call in calls:
        cluster.result(call)
    assert committed(cluster, "t") == [str(number) for number in range(20)]


def test_who_does_not_wait_for_a_call_does_not_end_it(cluster: TimedCluster) -> None:
    transaction = begin(cluster)
    first = transaction.publish(cluster.resources(), addressed("t", "a"))
    second = transaction.publish(cluster.resources(), addressed("t", "b"))
    first.abandon()
    second.abandon()
    publish(cluster, transaction, "t", "c")
    commit(cluster, transaction)
    assert committed(cluster, "t") == ["a", "b", "c"]


# what fails


@pytest.mark.parametrize(
    ("topic", "value", "error"),
    [("t", "x" * 2_000_000, RecordTooLarge), ("not a topic", "x", ApiError)],
    ids=["too large", "no topic"],
)
def test_a_call_that_fails_aborts_the_transaction_and_is_told_to_all_that_come_later(
    cluster: TimedCluster, topic: str, value: str, error: type[Exception]
) -> None:
    transaction = begin(cluster)
    publish(cluster, transaction, "u", "before")
    with pytest.raises(error):
        publish(cluster, transaction, topic, value)
    assert state(cluster, transaction) == "CompleteAbort"
    with pytest.raises(TransactionOver, match="something in it failed"):
        commit(cluster, transaction)
    with pytest.raises(TransactionOver):
        publish(cluster, transaction, "u", "after")
    abort(cluster, transaction)
    assert committed(cluster, "u") == []
    assert is_stable(cluster, "u")


def test_records_that_were_written_when_another_partition_failed_are_aborted(
    cluster: TimedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no room")

    transaction = begin(cluster)
    log = cluster.broker.find_log("u", 0)
    with monkeypatch.context() as broken:
        broken.setattr(log, "append_as_leader", full)
        records = addressed("t", "a") + addressed("u", "b")
        with pytest.raises(DiskFull):
            cluster.result(transaction.publish(cluster.resources(), records))
    assert cluster.broker.find_log("t", 0).log_end_offset > 0
    assert committed(cluster, "t") == committed(cluster, "u") == []
    assert is_stable(cluster, "t")
    assert is_stable(cluster, "u")
    after = begin(cluster)
    publish(cluster, after, "u", "c")
    commit(cluster, after)
    assert committed(cluster, "u") == ["c"]


def test_when_the_abort_cannot_be_stored_nothing_else_is_possible_until_it_is(
    cluster: TimedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = begin(cluster)
    publish(cluster, transaction, "t", "a")

    def refused(*_: object) -> Pending[None]:
        return Pending.failed(OSError("the disk is gone"))

    store = cluster.broker.transactions._environment.store
    with monkeypatch.context() as broken:
        broken.setattr(store, "save", refused)
        with pytest.raises(ApiError):
            publish(cluster, transaction, "no topic at all", "b")
        described = registry(cluster).describe(cluster.resources(), str(transaction.id))
        assert described.state == "Ongoing"
        assert "failed" in described.reason
        for call in (commit, lambda *_: publish(cluster, transaction, "t", "c")):
            with pytest.raises(OnlyAbort, match="Abort it"):
                call(cluster, transaction)
    abort(cluster, transaction)
    assert committed(cluster, "t") == []
    assert is_stable(cluster, "t")


def test_a_commit_that_cannot_be_stored_may_be_asked_for_again(
    cluster: TimedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = begin(cluster)
    publish(cluster, transaction, "t", "a")
    store = cluster.broker.transactions._environment.store
    with monkeypatch.context() as broken:
        broken.setattr(store, "save", lambda *_: Pending.failed(OSError("the disk is gone")))
        with pytest.raises(Exception, match="could not be stored"):
            commit(cluster, transaction)
    assert state(cluster, transaction) == "Ongoing"
    commit(cluster, transaction)
    assert committed(cluster, "t") == ["a"]


# offsets


def test_offsets_count_when_the_transaction_commits(cluster: TimedCluster) -> None:
    for end, found in ((abort, None), (commit, 5)):
        transaction = begin(cluster)
        publish(cluster, transaction, "u", "a")
        cluster.result(transaction.add_offsets(cluster.resources(), "g", [NewOffset("t", 0, 5)]))
        end(cluster, transaction)
        assert group_offset(cluster, "g", "t") == found


def test_offsets_alone_are_a_transaction_too(cluster: TimedCluster) -> None:
    transaction = begin(cluster)
    cluster.result(transaction.add_offsets(cluster.resources(), "g", [NewOffset("t", 1, 7)]))
    assert state(cluster, transaction) == "Ongoing"
    commit(cluster, transaction)
    assert group_offset(cluster, "g", "t", 1) == 7


def test_offsets_that_are_refused_abort_what_was_published(cluster: TimedCluster) -> None:
    for new in (NewOffset("t", 9, 1), NewOffset("nowhere", 0, 1), NewOffset("t", 0, 1, metadata="x" * 5000)):
        transaction = begin(cluster)
        publish(cluster, transaction, "u", "a")
        refused = transaction.add_offsets(cluster.resources(), "g", [NewOffset("t", 0, 3), new])
        with pytest.raises(Exception, match=r"does not exist|too long"):
            cluster.result(refused)
        assert state(cluster, transaction) == "CompleteAbort"
    assert committed(cluster, "u") == []
    assert group_offset(cluster, "g", "t") is None


def test_a_member_of_an_older_generation_is_refused(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    consumer = cluster.broker.consumers.open(resources, "g", ConsumerSettings(auto_commit=False))
    consumer.subscribe(resources, ["t"])
    cluster.result(consumer.assigned(max_wait_ms=1000))
    member_id = consumer.member_id
    assert member_id is not None
    group = cluster.broker.groups.groups["g"]
    assert isinstance(group, ConsumerGroup)
    epoch = group.member(member_id).member_epoch
    for member in (Member(member_id, epoch + 5), Member("stranger", epoch)):
        transaction = begin(cluster)
        publish(cluster, transaction, "u", "a")
        with pytest.raises((IllegalGeneration, UnknownMemberId)):
            cluster.result(transaction.add_offsets(resources, "g", [NewOffset("t", 0, 1)], member))
        assert state(cluster, transaction) == "CompleteAbort"
    transaction = begin(cluster)
    cluster.result(transaction.add_offsets(resources, "g", [NewOffset("t", 0, 1)], Member(member_id, epoch)))
    commit(cluster, transaction)
    assert group_offset(cluster, "g", "t") == 1


# consumers inside the broker


def test_what_a_consumer_has_read_is_committed_with_what_was_made_of_it(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    settings = ConsumerSettings(OffsetReset.EARLIEST, auto_commit=False, read_committed=True)
    consumer = cluster.broker.consumers.open(resources, "g", settings, "c")
    consumer.subscribe(resources, ["t"])
    cluster.produce("t", 0, b"1", b"2")
    cluster.produce("t", 1, b"3")

    def turn(end: object) -> list[bytes]:
        records = cluster.result(consumer.poll(resources, max_wait_ms=1000))
        while len(records) < 3:
            records += cluster.result(consumer.poll(resources, max_wait_ms=1000))
        transaction = begin(cluster)
        for each in records:
            publish(cluster, transaction, "u", f"copy of {(each.record.value or b'').decode()}")
        cluster.result(transaction.add_consumed(resources, consumer))
        end(cluster, transaction)  # type: ignore[operator]
        return sorted(cluster.values(records))

    first = turn(abort)
    assert committed(cluster, "u") == []
    consumer.seek_to_committed(consumer.assignment)
    assert turn(commit) == first == [b"1", b"2", b"3"]
    assert sorted(committed(cluster, "u")) == ["copy of 1", "copy of 2", "copy of 3"]
    assert group_offset(cluster, "g", "t") == 2
    assert group_offset(cluster, "g", "t", 1) == 1
    # It goes on behind that, and has nothing left to commit.
    assert cluster.result(consumer.poll(resources)) == []
    cluster.result(consumer.close())
    assert group_offset(cluster, "g", "t") == 2


def test_offsets_of_a_consumer_may_be_named(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    settings = ConsumerSettings(OffsetReset.EARLIEST, auto_commit=False)
    consumer = cluster.broker.consumers.open(resources, "g", settings)
    consumer.subscribe(resources, ["u"])
    cluster.produce("u", 0, b"1", b"2")
    assert len(cluster.result(consumer.poll(resources, max_wait_ms=5000))) == 2
    transaction = begin(cluster)
    cluster.result(transaction.add_consumed(resources, consumer, [NewOffset("u", 0, 1)]))
    commit(cluster, transaction)
    assert group_offset(cluster, "g", "u") == 1
    transaction = begin(cluster)
    with pytest.raises(ApiError, match="not assigned"):
        cluster.result(transaction.add_consumed(resources, consumer, [NewOffset("t", 0, 1)]))


def test_a_consumer_that_commits_by_itself_is_refused(cluster: TimedCluster) -> None:
    resources = cluster.resources()
    consumer = cluster.broker.consumers.open(resources, "g", ConsumerSettings())
    transaction = begin(cluster)
    with pytest.raises(ApiError, match="commits by itself"):
        cluster.result(transaction.add_consumed(resources, consumer))


def test_a_consumer_that_lost_its_place_in_the_group_takes_the_transaction_with_it(
    cluster: TimedCluster,
) -> None:
    resources = cluster.resources()
    settings = ConsumerSettings(OffsetReset.EARLIEST, auto_commit=False)
    consumer = cluster.broker.consumers.open(resources, "g", settings)
    consumer.subscribe(resources, ["u"])
    cluster.produce("u", 0, b"1")
    assert len(cluster.result(consumer.poll(resources, max_wait_ms=5000))) == 1
    transaction = begin(cluster)
    publish(cluster, transaction, "t", "made of 1")
    membership = consumer._membership
    assert membership is not None
    membership.member_id = "somebody else"
    with pytest.raises(UnknownMemberId):
        cluster.result(transaction.add_consumed(resources, consumer))
    assert committed(cluster, "t") == []
    assert state(cluster, transaction) == "CompleteAbort"


def test_codes_are_those_that_kafka_has_for_the_like(cluster: TimedCluster) -> None:
    transaction = begin(cluster)
    abort(cluster, transaction)
    with pytest.raises(ApiError) as over:
        commit(cluster, transaction)
    assert over.value.code is ErrorCode.INVALID_TXN_STATE
