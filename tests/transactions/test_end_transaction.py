from __future__ import annotations

import pytest

from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTxnState,
    ProducerFenced,
    TransactionError,
)
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TransactionState

from .support import ID, T0, T1, Simulation

COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


@pytest.fixture(params=[True, False], ids=["commit", "abort"])
def commit(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_ending_tells_every_partition_and_completes(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0, T1)
    assert simulation.end(producer, commit=commit) == (-1, -1)
    marker = ("commit" if commit else "abort", 0)
    assert simulation.partitions.markers(T0) == simulation.partitions.markers(T1) == [marker]
    assert simulation.transaction.state is COMPLETE[commit]
    assert simulation.transaction.partitions == frozenset()


def test_that_it_is_complete_is_stored_a_second_later(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.end(producer, commit=commit)
    assert simulation.store.load() != [simulation.transaction]
    simulation.pass_time(1000)
    assert simulation.store.load() == [simulation.transaction]


def test_that_it_is_complete_is_stored_when_the_broker_stops(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.end(producer, commit=commit)
    simulation.coordinator.close()
    assert simulation.store.load() == [simulation.transaction]


def test_what_begins_the_next_transaction_is_stored_in_place_of_complete(simulation: Simulation) -> None:
    producer = simulation.init()
    for _ in range(2):
        simulation.add(producer, T0)
        simulation.commit(producer)
    simulation.add(producer, T0)
    simulation.pass_time(2000)
    assert TransactionState.COMPLETE_COMMIT not in simulation.store.history
    assert simulation.store.load() == [simulation.transaction]
    assert simulation.transaction.state is TransactionState.ONGOING


def test_complete_is_not_stored_over_what_is_on_its_way(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.commit(producer)
    simulation.store.held = True
    adding = simulation.begin_add(producer, T1)
    simulation.pass_time(2000)
    simulation.store.finish()
    assert adding.done
    assert simulation.store.load() == [simulation.transaction]
    assert simulation.transaction.state is TransactionState.ONGOING


def test_complete_is_stored_after_all_if_the_next_transaction_could_not_be(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.commit(producer)
    simulation.store.held = True
    adding = simulation.begin_add(producer, T1)
    simulation.pass_time(2000)
    simulation.store.finish(error=OSError("no space"))
    with pytest.raises(CoordinatorNotAvailable):
        adding.result()
    simulation.store.held = False
    simulation.pass_time(1000)
    assert simulation.store.load() == [simulation.transaction]
    assert simulation.transaction.state is TransactionState.COMPLETE_COMMIT


def test_nobody_is_told_before_the_decision_is_stored(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.store.held = True
    ending = simulation.begin_end(producer, commit=commit)
    assert not simulation.partitions.told
    assert simulation.transaction.state is TransactionState.ONGOING
    simulation.store.finish(1)
    assert simulation.partitions.markers(T0)
    assert ending.done  # that it is complete may be stored later
    assert simulation.transaction.state is COMPLETE[commit]


def test_a_decision_that_could_not_be_stored_is_none(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.store.held = True
    ending = simulation.begin_end(producer, commit=commit)
    simulation.store.finish(error=OSError("no space"))
    with pytest.raises(CoordinatorNotAvailable):
        ending.result()
    simulation.store.held = False
    assert not simulation.partitions.told
    simulation.end(producer, commit=not commit)
    assert simulation.transaction.state is COMPLETE[not commit]


@pytest.mark.parametrize("version", [0, 2])
def test_the_answer_comes_before_the_partitions_are_told(simulation: Simulation, version: int) -> None:
    producer = simulation.init()
    simulation.add(producer, T0, version=version)
    simulation.store.held = True
    told_before: list[int] = []
    ending = simulation.begin_end(producer, version=version)
    ending.then(lambda _: told_before.append(len(simulation.partitions.told)))
    simulation.store.finish(1)
    assert told_before == [0]
    assert simulation.partitions.markers(T0) == [("commit", version // 2)]


def test_a_request_sent_at_the_answer_is_served_after_the_partitions_are_told(
    simulation: Simulation, commit: bool
) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.store.held = True
    told_before: list[int] = []

    def go_on(_: object) -> None:
        adding = simulation.begin_add(producer, T1)
        adding.then(lambda _: told_before.append(len(simulation.partitions.told)))

    simulation.begin_end(producer, commit=commit).then(go_on)
    simulation.store.finish(1)
    simulation.store.held = False
    simulation.store.finish()
    assert told_before == [1]
    assert simulation.transaction.partitions == {T1}


def test_the_answer_waits_until_the_partitions_show_it(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.partitions.held = []
    ending = simulation.begin_end(producer)
    adding = simulation.begin_add(producer, T1)
    assert not ending.done
    simulation.partitions.held[0].resolve(frozenset())
    assert ending.done
    adding.result()
    assert simulation.transaction.partitions == {T1}


def test_a_partition_that_cannot_be_told_is_told_later(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0, T1)
    simulation.partitions.failing = {T1}
    simulation.end(producer, commit=commit)
    assert simulation.transaction.is_prepared
    with pytest.raises(ConcurrentTransactions):
        simulation.end(producer, commit=commit)
    with pytest.raises(InvalidTxnState):
        simulation.end(producer, commit=not commit)
    with pytest.raises(ConcurrentTransactions):
        simulation.init()
    simulation.pass_time(5000)
    assert simulation.transaction.is_prepared
    simulation.partitions.failing = set()
    simulation.pass_time(1000)
    assert simulation.transaction.state is COMPLETE[commit]
    assert len(simulation.partitions.markers(T0)) == len(simulation.partitions.markers(T1)) == 1


def test_participants_that_fail_altogether_are_told_later(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.partitions.held = []
    ending = simulation.begin_end(producer)
    simulation.partitions.held[0].fail(OSError("?"))
    ending.result()
    assert simulation.transaction.is_prepared
    simulation.partitions.held = None
    simulation.pass_time(1000)
    assert simulation.transaction.state is TransactionState.COMPLETE_COMMIT


# version 1


def test_version_1_wants_the_epoch_exactly(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer)
    with pytest.raises(InvalidProducerIdMapping):
        simulation.end(ProducerIdAndEpoch(7, 0), commit=commit)
    for epoch in (-1, 1):
        with pytest.raises(ProducerFenced):
            simulation.end(ProducerIdAndEpoch(producer.producer_id, epoch), commit=commit)
    with pytest.raises(InvalidProducerIdMapping):
        simulation.coordinator.end_transaction("?", producer, commit=commit, version=0, now_ms=0).result()
    with pytest.raises(InvalidRequest):
        simulation.coordinator.end_transaction("", producer, commit=commit, version=0, now_ms=0).result()


def test_version_1_ends_again_what_it_ended(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    with pytest.raises(InvalidTxnState):
        simulation.end(producer, commit=commit)
    simulation.add(producer)
    simulation.end(producer, commit=commit)
    simulation.end(producer, commit=commit)
    with pytest.raises(InvalidTxnState):
        simulation.end(producer, commit=not commit)
    assert len(simulation.partitions.told) == 1


# version 2


def test_version_2_raises_the_epoch(simulation: Simulation, commit: bool) -> None:
    producer = simulation.init()
    simulation.add(producer, T0, version=2)
    new = simulation.end(producer, commit=commit, version=2)
    assert new == (producer.producer_id, 1)
    assert simulation.partitions.markers(T0) == [("commit" if commit else "abort", 1)]
    simulation.add(new, T0, version=2)
    with pytest.raises(ProducerFenced):
        simulation.add(producer, T0, version=2)


Outcome = type[TransactionError] | str
F, I = ProducerFenced, InvalidTxnState  # noqa: E741

# state: what abort again, abort anew, commit again and commit anew lead to
TABLE: dict[TransactionState, tuple[Outcome, Outcome, Outcome, Outcome]] = {
    TransactionState.EMPTY: (F, "prepared", F, I),
    TransactionState.COMPLETE_ABORT: ("done", "prepared", I, I),
    TransactionState.COMPLETE_COMMIT: (I, "prepared", "done", I),
    TransactionState.ONGOING: (F, "prepared", F, "prepared"),
    TransactionState.PREPARE_ABORT: (ConcurrentTransactions, F, I, F),
    TransactionState.PREPARE_COMMIT: (I, F, ConcurrentTransactions, F),
}


@pytest.mark.parametrize("state", TABLE, ids=str)
@pytest.mark.parametrize("column", range(4), ids=["abort again", "abort anew", "commit again", "commit anew"])
def test_version_2_tells_a_request_sent_again_from_a_new_one(
    simulation: Simulation, state: TransactionState, column: int
) -> None:
    simulation.partitions.failing = {T0}
    partitions = (
        frozenset((T0,)) if state not in (TransactionState.EMPTY, *COMPLETE.values()) else frozenset()
    )
    before = simulation.set_state(
        state=state,
        producer_epoch=5,
        last_producer_epoch=4,
        start_ms=1,
        partitions=partitions,
        transaction_version=2,
    )
    simulation.partitions.failing = set()
    producer = ProducerIdAndEpoch(100, 4 if column % 2 == 0 else 5)
    ending = simulation.begin_end(producer, commit=column >= 2, version=2)
    outcome = TABLE[state][column]
    if isinstance(outcome, str):
        assert ending.result() == (100, 5 if outcome == "done" else 6)
        assert simulation.transaction.state is (before.state if outcome == "done" else COMPLETE[column >= 2])
    else:
        with pytest.raises(outcome):
            ending.result()
        assert simulation.transaction == before


@pytest.mark.parametrize("epoch", [3, 6])
def test_version_2_fences_every_other_epoch(simulation: Simulation, epoch: int) -> None:
    for state in (TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT, TransactionState.EMPTY):
        simulation.set_state(state=state, producer_epoch=5, start_ms=1)
        with pytest.raises(ProducerFenced):
            simulation.commit(ProducerIdAndEpoch(100, epoch), version=2)


def test_version_2_does_not_take_the_end_of_a_newer_producer_for_its_own(
    simulation: Simulation, commit: bool
) -> None:
    """A client of version 1 that came after it has the next epoch, and keeps it when it ends transactions."""
    old = simulation.init()
    new = simulation.init()
    simulation.add(new, T0)
    simulation.end(new, commit=commit)
    with pytest.raises(ProducerFenced):
        simulation.end(old, commit=commit, version=2)
    simulation.add(new, T0)


def test_version_2_goes_on_with_a_new_producer_id_when_epochs_are_used_up(
    simulation: Simulation, commit: bool
) -> None:
    old = simulation.set_state(producer_epoch=32766).producer
    simulation.add(old, T0, version=2)
    new = simulation.end(old, commit=commit, version=2)
    assert new == (101, 0)
    assert simulation.partitions.markers(T0) == [("commit" if commit else "abort", 32767)]
    assert simulation.end(old, commit=commit, version=2) == new  # again
    simulation.add(new, T0, version=2)
    with pytest.raises(InvalidProducerIdMapping):
        simulation.end(old, commit=commit, version=2)


def test_a_transaction_ended_by_version_2_is_not_ended_again_by_version_1(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer)
    simulation.commit(producer, version=2)
    with pytest.raises(ProducerFenced):
        simulation.commit(producer)


def test_the_last_update_and_the_start_are_kept(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer)
    began = simulation.now_ms
    simulation.pass_time(700)
    simulation.commit(producer)
    assert simulation.coordinator.describe(ID).start_ms == began
    assert simulation.transaction.last_update_ms == simulation.now_ms
