"""The same transactional requests to kbroker and to Apache Kafka 4.3.1: error codes, epochs, offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat.differential.pair import Pair
from compat.harness.batches import TRANSACTIONAL, Record, batch
from compat.harness.raw_producer import RawProducer, find_coordinators
from compat.harness.side import Side
from compat.harness.waiting import eventually

Scenario = Callable[[RawProducer, str], None]
V1 = {"produce": 9, "end": 3}
V2 = {"produce": 13, "end": 5}


@pytest.fixture
def same(pair: Pair, unique: Callable[[str], str]) -> Callable[[Scenario], None]:
    """Run a scenario of one producer and one topic (of two partitions) on both brokers."""

    def run(scenario: Scenario, transactional_id: str | None = None) -> None:
        topic = unique("compat-txn")
        transactional_id = unique("txn") if transactional_id is None else transactional_id

        def one_side(side: Side) -> Any:
            find_coordinators(side)
            producer = RawProducer(side, transactional_id, {topic: side.create_topic(topic, 2)})
            scenario(producer, topic)
            return producer.notes

        pair.same(one_side)

    return run


# InitProducerId


@pytest.mark.parametrize("version", range(6))
def test_a_producer_is_initialized_again_and_again(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        for timeout_ms in (60_000, 1000, 30_000):
            producer.init(version, timeout_ms=timeout_ms)
            producer.note_state()

    same(scenario)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_000, 900_001, 2**31 - 1])
def test_the_transaction_timeout_has_limits(same, timeout_ms) -> None:
    same(lambda producer, topic: producer.init(timeout_ms=timeout_ms))


def test_an_empty_transactional_id_is_refused_everywhere(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.producer_id, producer.epoch = 5, 0
        producer.add(topic)
        producer.add_offsets("group")
        producer.end()
        producer.note_state()
        producer.commit_offset("group", topic, 1)
        producer.produce(topic)
        producer.produce(topic, version=13)

    same(scenario, "")


@pytest.mark.parametrize("version", [3, 5])
def test_a_producer_goes_on_after_an_error_with_the_epoch_it_has(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init(version)
        first = (producer.producer_id, producer.epoch)
        producer.init(version, expected=first)
        producer.init(version, expected=first)  # the same request again
        second = (producer.producer_id, producer.epoch)
        producer.init(version, expected=second)
        producer.init(version, expected=first)  # fenced
        producer.init(version, expected=(producer.producer_id, 77))
        producer.init(version, expected=(producer.producer_id + 1, 0))
        producer.init(version, expected=(producer.producer_id, -1))
        producer.init(version, expected=(-1, 3))
        producer.init(version)
        producer.init(version, expected=(producer.producer_id, producer.epoch - 1))
        producer.note_state()

    same(scenario)


def test_an_unknown_producer_that_goes_on_gets_a_new_id(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init(expected=(123_456, 5))
        producer.note_state()

    same(scenario)


def test_initializing_aborts_the_open_transaction_and_fences_its_producer(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.add(topic)
        producer.produce(topic)
        zombie = (producer.producer_id, producer.epoch)
        other = RawProducer(producer.side, producer.transactional_id)
        other.producer_ids = producer.producer_ids
        other.init(once=True)
        other.settle()
        other.note_state()
        other.note_log(topic)
        other.init(once=True)
        producer.produce(topic, sequence=1)
        producer.produce(topic, sequence=1, version=11)
        producer.produce(topic, sequence=1, version=12)
        for version in range(4):
            producer.add(topic, 1, version=version)
            producer.add_offsets("group", version=version)
            producer.commit_offset("group", topic, 1, version=version)
            producer.end(version=version, producer=zombie)
        producer.commit_offset("group", topic, 1, version=4)
        producer.commit_offset("group", topic, 1, version=5)
        producer.end(version=4, producer=zombie)
        producer.end(version=5, producer=zombie)
        producer.init(3, expected=zombie)
        producer.init(4, expected=zombie)
        producer.notes += other.notes

    same(scenario)


# adding partitions


def test_partitions_are_added_all_or_none(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.add(topic, 0, 1, 2)
        producer.note_state()
        producer.add("compat-no-such-topic", 0)
        producer.add(topic, 0)
        producer.note_state()
        producer.add(topic, 0, 1)
        producer.note_state()

    same(scenario)


def test_adding_needs_the_producer_that_the_transactional_id_belongs_to(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.producer_id, producer.epoch = 5, 0
        producer.add(topic)
        producer.init()
        for version in range(4):
            producer.add(topic, version=version, V3AndBelowProducerId=99_999)
            producer.add(topic, version=version, V3AndBelowProducerEpoch=7)
            producer.add_offsets("group", version=version, ProducerId=99_999)
            producer.add_offsets("group", version=version, ProducerEpoch=7)
        producer.note_state()

    same(scenario)


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_partitions_of_several_transactions(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        mine = producer.transaction
        producer.add_batched(mine(topic, 0, 1, VerifyOnly=True), version=version)
        producer.add_batched(mine(topic, 0), version=version)
        producer.note_state()
        producer.add_batched(mine(topic, 0, 1, VerifyOnly=True), version=version)
        producer.add_batched(mine(topic, 0, ProducerEpoch=3, VerifyOnly=True), version=version)
        producer.add_batched(mine(topic, 0, ProducerId=99_999, VerifyOnly=True), version=version)
        producer.add_batched(
            mine(topic, 1),
            mine(topic, 0, TransactionalId="compat-unknown"),
            version=version,
        )
        producer.add_batched(mine(topic, 0, 5, VerifyOnly=True), version=version)
        producer.add_batched(mine(topic, 0, TransactionalId="", VerifyOnly=True), version=version)
        producer.end()
        producer.add_batched(mine(topic, 0, VerifyOnly=True), version=version)
        producer.note_state()

    same(scenario)


# producing


@pytest.mark.parametrize("version", [3, 9, 10, 11])
def test_before_version_12_a_partition_must_have_been_added(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.produce(topic, version=version)
        producer.add(topic, 0)
        producer.produce(topic, version=version)
        producer.produce(topic, version=version)
        producer.produce(topic, version=version, partition=1)
        producer.note_state()
        producer.note_log(topic)
        producer.end()
        producer.note_log(topic)
        producer.produce(topic, version=version)
        producer.note_log(topic)

    same(scenario)


@pytest.mark.parametrize("version", [12, 13])
def test_from_version_12_on_a_partition_is_added_by_writing_to_it(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.produce(topic, version=version)
        producer.note_state()
        producer.produce(topic, version=version)
        producer.produce(topic, version=version, partition=1)
        producer.note_state()
        producer.note_log(topic)
        producer.end(version=5)
        producer.note_log(topic)
        producer.produce(topic, version=version)
        producer.end(version=5, commit=False)
        producer.note_state()
        producer.note_log(topic)
        producer.note_log(topic, 1)

    same(scenario)


@pytest.mark.parametrize("version", [9, 11, 12, 13])
def test_a_transactional_batch_of_somebody_else_is_refused(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.produce(topic, version=version, producer=(5, 0))  # nobody was initialized
        producer.init()
        producer.produce(topic, version=version, transactional_id=None)
        producer.produce(topic, version=version, producer=(99_999, 0))
        producer.produce(topic, version=version, producer=(producer.producer_id, 5))
        producer.produce(topic, version=version, transactional_id="compat-unknown")
        producer.produce(topic, version=version, transactional_id="")
        producer.produce(topic, version=version, producer=(-1, -1), sequence=-1)
        producer.produce(topic, version=version, attributes=0)
        producer.note_log(topic)
        producer.note_state()

    same(scenario)


@pytest.mark.parametrize("version", [9, 11, 13])
def test_batches_of_two_producers_in_one_request_are_refused(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        batches = {
            partition: batch(
                (Record(),),
                attributes=TRANSACTIONAL,
                producer_id=producer.producer_id + partition,
                producer_epoch=0,
                base_sequence=0,
            )
            for partition in (0, 1)
        }
        _, answer = producer.produce_batches(batches, topic, version, producer.transactional_id)
        producer.notes.append({index: each["ErrorCode"] for index, each in answer.items()})
        plain = {0: batches[0], 1: batch()}
        _, answer = producer.produce_batches(plain, topic, version, producer.transactional_id)
        producer.notes.append({index: each["ErrorCode"] for index, each in answer.items()})
        producer.note_state()

    same(scenario)


@pytest.mark.parametrize("version", [9, 11, 12, 13])
def test_the_first_batch_of_a_transaction_has_the_right_sequence(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.produce(topic, version=version, sequence=3)
        producer.produce(topic, version=version, sequence=2)
        producer.add(topic)
        producer.produce(topic, version=version, sequence=3)
        producer.produce(topic, version=version, sequence=2)
        producer.produce(topic, version=version, sequence=3)
        producer.produce(topic, version=version, sequence=3)
        producer.produce(topic, version=version, sequence=5)
        producer.note_log(topic)

    same(scenario)


def test_a_plain_batch_in_an_open_transaction_is_refused(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.add(topic)
        producer.produce(topic)
        producer.produce(topic, attributes=0, sequence=1)
        producer.produce(topic, sequence=1)
        producer.end()
        producer.produce(topic, attributes=0, sequence=2)
        producer.note_log(topic)

    same(scenario)


# ending


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(5))
def test_ending_with_version_1(same, version, commit) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.producer_id, producer.epoch = 5, 0
        producer.end(commit=commit, version=version)
        producer.init()
        producer.end(commit=commit, version=version)
        producer.add(topic)
        producer.produce(topic)
        producer.end(commit=commit, version=version, producer=(99_999, 0))
        producer.end(commit=commit, version=version, producer=(producer.producer_id, 5))
        producer.end(commit=commit, version=version)
        producer.note_state()
        producer.end(commit=commit, version=version)
        producer.end(commit=not commit, version=version)
        producer.note_log(topic)
        producer.add(topic)
        producer.end(commit=not commit, version=version)
        producer.note_log(topic)
        producer.note_state()

    same(scenario)


@pytest.mark.parametrize("commit", [True, False])
def test_ending_with_version_2_raises_the_epoch(same, commit) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.end(version=5)  # nothing to commit
        producer.end(version=5, commit=False)  # but to abort
        producer.note_state()
        producer.produce(topic, version=13)
        before = (producer.producer_id, producer.epoch)
        producer.end(version=5, commit=commit, producer=(producer.producer_id, producer.epoch + 1))
        producer.end(version=5, commit=commit, producer=(99_999, producer.epoch))
        producer.end(version=5, commit=commit)
        producer.note_state()
        producer.note_log(topic)
        producer.end(version=5, commit=commit, producer=before)  # again
        producer.end(version=5, commit=not commit, producer=before)
        producer.end(version=5, commit=commit)
        producer.note_state()
        producer.end(version=5, commit=not commit)
        producer.note_state()
        producer.produce(topic, version=13)
        producer.produce(topic, version=13, producer=before)
        producer.end(version=5)
        producer.note_state()
        producer.note_log(topic)

    same(scenario)


def test_both_versions_one_after_the_other(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init()
        producer.add(topic)
        producer.produce(topic)
        producer.end(version=5)
        producer.note_state()
        producer.produce(topic, version=13)
        producer.end(version=4)
        producer.note_state()
        producer.end(version=5, commit=False)
        producer.add(topic)
        producer.end(version=3, commit=False)
        producer.note_state()
        producer.note_log(topic)

    same(scenario)


def test_interleaved_transactions_and_their_aborted_list(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        other = RawProducer(producer.side, producer.transactional_id + "-other", producer.topic_ids)
        other.producer_ids = producer.producer_ids
        producer.init()
        other.init()
        other.produce(topic, version=13)
        producer.produce(topic, version=13)
        producer.note_log(topic)
        producer.end(version=5, commit=False)
        producer.note_log(topic)
        producer.produce(topic, version=13)
        producer.note_log(topic)
        other.end(version=5, commit=False)
        producer.note_log(topic)
        producer.end(version=5)
        producer.note_log(topic)

    same(scenario)


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_past_its_timeout(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        producer.init(timeout_ms=300)
        if version == 1:
            producer.add(topic)
        producer.produce(topic, version=9 if version == 1 else 13)
        before = (producer.producer_id, producer.epoch)
        eventually(lambda: producer.describe()["TransactionState"], lambda state: state == "CompleteAbort")
        producer.note_state()
        producer.note_log(topic)
        producer.produce(topic, version=9, sequence=1)
        producer.produce(topic, version=13, sequence=1)
        producer.add(topic)
        producer.commit_offset("group", topic, 1, version=5)
        producer.end(version=3, producer=before)
        producer.end(version=3, commit=False, producer=before)
        producer.end(version=5, producer=before)
        producer.end(version=5, commit=False, producer=before)
        producer.note_state()
        producer.init(expected=before)
        producer.note_state()
        producer.init()
        producer.produce(topic, version=13)
        producer.end(version=5)
        producer.note_log(topic)

    same(scenario)


# offsets


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_a_group_in_a_transaction(same, version, unique) -> None:
    group = unique("group")

    def fetch(side: Side, topic: str, *, require_stable: bool) -> Any:
        wanted = {"GroupId": group, "Topics": [{"Name": topic, "PartitionIndexes": [0, 1]}]}
        (answer,) = side.raw("OffsetFetch", 8, {"Groups": [wanted], "RequireStable": require_stable})[
            "Groups"
        ]
        return answer

    def scenario(producer: RawProducer, topic: str) -> None:
        def note_offsets() -> None:
            for require_stable in (False, True):
                producer.notes.append(fetch(producer.side, topic, require_stable=require_stable))

        producer.init()
        # Once there is an offset of the transaction, Kafka asks its coordinator no more; kbroker always does.
        producer.commit_offset(group, topic, 6, version, TransactionalId="compat-unknown")
        producer.commit_offset(group, topic, 5, version)
        producer.add_offsets(group)
        producer.commit_offset(group, topic, 6, version)
        producer.commit_offset(group, "compat-no-such-topic", 6, version)
        producer.commit_offset(group, topic, 6, version, partition=9)
        producer.commit_offset("", topic, 6, version)
        producer.commit_offset(group, topic, 6, version, ProducerId=99_999)
        producer.commit_offset(group, topic, 6, version, ProducerEpoch=9)
        note_offsets()
        producer.end(commit=False)
        note_offsets()
        producer.add_offsets(group)
        producer.commit_offset(group, topic, 7, version)
        note_offsets()
        producer.end()
        note_offsets()

    same(scenario)


@pytest.mark.parametrize("version", [3, 5])
def test_members_that_are_not_in_the_group_commit_no_offsets(same, version, unique) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        group = unique("group")
        producer.init()
        producer.add_offsets(group)
        producer.commit_offset(group, topic, 1, version, MemberId="nobody", GenerationId=3)
        producer.commit_offset(
            group, topic, 1, version, GroupInstanceId="nobody", GenerationId=3, MemberId="x"
        )
        producer.commit_offset(group, topic, 1, version)
        producer.commit_offset(group, topic, 1, version, MemberId="nobody", GenerationId=3)
        producer.end()

    same(scenario)


# markers


@pytest.mark.parametrize("version", [1, 2])
def test_markers_from_outside(same, version) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        def mark(
            epoch: int, *, partitions: tuple[int, ...] = (0,), name: str = topic, **changes: Any
        ) -> None:
            marker = {
                "ProducerId": producer.producer_id,
                "ProducerEpoch": epoch,
                "TransactionResult": False,
                "Topics": [{"Name": name, "PartitionIndexes": list(partitions)}],
                "CoordinatorEpoch": 0,
                "TransactionVersion": 0,
                **changes,
            }
            answer = producer.side.raw("WriteTxnMarkers", version, {"Markers": [marker]})
            producer.notes.append(
                sorted(
                    (each["PartitionIndex"], each["ErrorCode"])
                    for result in answer["Markers"]
                    for topics in result["Topics"]
                    for each in topics["Partitions"]
                )
            )

        producer.init()
        producer.add(topic, 0)
        producer.produce(topic)
        mark(0, name="compat-no-such-topic")
        mark(0, partitions=(0, 7))
        producer.note_log(topic)
        mark(0)
        mark(1, CoordinatorEpoch=5)
        mark(1, CoordinatorEpoch=4)
        mark(0)
        mark(1, CoordinatorEpoch=5, TransactionVersion=2)
        mark(3, CoordinatorEpoch=5, TransactionVersion=2)
        producer.note_log(topic)

    same(scenario)


# administration


def test_transactions_are_listed_by_state_producer_duration_and_pattern(same) -> None:
    def scenario(producer: RawProducer, topic: str) -> None:
        def list_(version: int, **filters: Any) -> None:
            values = {"StateFilters": [], "ProducerIdFilters": [], **filters}
            answer = producer.side.raw("ListTransactions", version, values)
            found = [
                (each["TransactionalId"], each["TransactionState"])
                for each in answer["TransactionStates"]
                if each["ProducerId"] == producer.producer_id
            ]
            producer.notes.append((answer["ErrorCode"], sorted(answer["UnknownStateFilters"]), found))

        producer.init()
        list_(0)
        list_(0, StateFilters=["Empty"])
        list_(0, StateFilters=["Ongoing"])
        list_(1, DurationFilter=0)
        list_(1, DurationFilter=1_000_000)
        list_(1, DurationFilter=-5)
        producer.add(topic)
        list_(0, ProducerIdFilters=[producer.producer_id])
        list_(0, ProducerIdFilters=[999_999])
        list_(0, StateFilters=["Empty", "Ongoing", "Nonsense", "ongoing"])
        list_(0, StateFilters=["Nonsense"])
        list_(1, DurationFilter=1_000_000)
        list_(2, TransactionalIdPattern=None)
        list_(2, TransactionalIdPattern="")
        list_(2, TransactionalIdPattern=producer.transactional_id[:4] + ".*")
        list_(2, TransactionalIdPattern=producer.transactional_id[:4])
        list_(2, TransactionalIdPattern="(")
        list_(2, TransactionalIdPattern="(?=a)")
        producer.end(commit=False)
        for state in ("CompleteAbort", "Dead", "PrepareEpochFence", "PrepareAbort"):
            list_(0, StateFilters=[state])

    same(scenario)


def test_describing_what_is_not_there(same) -> None:
    same(lambda producer, topic: producer.note_state())
