from __future__ import annotations

import pytest

from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
)
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TransactionState

from .support import T0, Simulation


def test_a_new_transactional_id_gets_a_producer_id_and_epoch_0(simulation: Simulation) -> None:
    producer = simulation.init(timeout_ms=5000)
    assert producer == (101, 0)
    assert simulation.transaction.state is TransactionState.EMPTY
    assert simulation.transaction.timeout_ms == 5000


def test_each_initialization_raises_the_epoch_and_sets_the_timeout(simulation: Simulation) -> None:
    first = simulation.init()
    second = simulation.init(timeout_ms=7000)
    assert second == (first.producer_id, 1)
    assert simulation.transaction.timeout_ms == 7000


def test_nothing_is_known_before_it_is_stored(simulation: Simulation) -> None:
    simulation.store.held = True
    answer = simulation.begin_init()
    assert not answer.done
    assert not simulation.coordinator.list_transactions((), (), -1, simulation.now_ms)
    simulation.store.finish()
    assert answer.result() == (101, 0)


def test_a_failed_write_changes_nothing_and_may_be_tried_again(simulation: Simulation) -> None:
    simulation.store.held = True
    answer = simulation.begin_init()
    simulation.store.finish(error=OSError("no space"))
    with pytest.raises(CoordinatorNotAvailable):
        answer.result()
    simulation.store.held = False
    assert simulation.init().producer_epoch == 0


def test_the_timeout_is_positive_and_limited(simulation: Simulation) -> None:
    for timeout_ms in (0, -1, 900_001):
        with pytest.raises(InvalidTransactionTimeout):
            simulation.init(timeout_ms=timeout_ms)
    simulation.init(timeout_ms=900_000)


def test_an_empty_transactional_id_is_refused(simulation: Simulation) -> None:
    with pytest.raises(InvalidRequest):
        simulation.coordinator.init_producer_id("", 1000, None, 0).result()


def test_a_producer_that_goes_on_gets_the_next_epoch(simulation: Simulation) -> None:
    first = simulation.init()
    second = simulation.init(first)
    assert second == (first.producer_id, 1)
    assert simulation.init(first) == second  # the same request again
    third = simulation.init(second)
    assert third.producer_epoch == 2
    with pytest.raises(ProducerFenced):
        simulation.init(first)


def test_a_new_producer_fences_the_one_that_wants_to_go_on(simulation: Simulation) -> None:
    first = simulation.init()
    simulation.init()
    with pytest.raises(ProducerFenced):
        simulation.init(first)


def test_going_on_needs_the_producer_id_of_the_transactional_id(simulation: Simulation) -> None:
    simulation.init()
    with pytest.raises(ProducerFenced):
        simulation.init(ProducerIdAndEpoch(7, 0))


def test_going_on_with_a_forgotten_transactional_id_gets_a_new_producer_id(simulation: Simulation) -> None:
    assert simulation.init(ProducerIdAndEpoch(7, 3)) == (101, 0)


def test_an_exhausted_epoch_leads_to_a_new_producer_id(simulation: Simulation) -> None:
    simulation.set_state(producer_epoch=32766)
    old = simulation.transaction.producer
    assert simulation.init() == (101, 0)
    with pytest.raises(ProducerFenced):
        simulation.init(old)  # another producer has started since


def test_a_producer_with_an_exhausted_epoch_may_ask_twice_for_its_new_id(simulation: Simulation) -> None:
    old = simulation.set_state(producer_epoch=32766).producer
    new = simulation.init(old)
    assert new == (101, 0)
    assert simulation.init(old) == new


@pytest.mark.parametrize("version", [0, 2])
def test_an_open_transaction_is_aborted_first_and_its_producer_fenced(version: int) -> None:
    simulation = Simulation(version=version)
    zombie = simulation.init()
    simulation.add(zombie, T0)
    with pytest.raises(ConcurrentTransactions):
        simulation.init()
    assert simulation.partitions.markers(T0) == [("abort", 1)]
    assert simulation.transaction.state is TransactionState.COMPLETE_ABORT
    assert simulation.init().producer_epoch == 2
    with pytest.raises(ProducerFenced):
        simulation.add(zombie, T0)


@pytest.mark.parametrize("version", [0, 2])
def test_the_very_last_epoch_is_there_for_fencing(version: int) -> None:
    simulation = Simulation(version=version)
    last = simulation.set_state(producer_epoch=32765).producer
    last = simulation.init(last)
    assert last.producer_epoch == 32766
    simulation.add(last, T0)
    with pytest.raises(ConcurrentTransactions):
        simulation.init()
    assert simulation.partitions.markers(T0) == [("abort", 32767)]
    assert simulation.init().producer_id > last.producer_id


def test_a_request_waits_for_the_one_before_it(simulation: Simulation) -> None:
    simulation.store.held = True
    first, second = simulation.begin_init(), simulation.begin_init()
    simulation.store.finish()
    assert first.result() == (101, 0)
    assert not second.done
    simulation.store.finish()
    assert second.result() == (101, 1)


def test_whoever_gives_up_waiting_does_not_hold_up_the_others(simulation: Simulation) -> None:
    simulation.store.held = True
    gone, second = simulation.begin_init(), simulation.begin_init()
    gone.abandon()
    simulation.store.finish()
    simulation.store.finish()
    assert second.result() == (101, 1)
