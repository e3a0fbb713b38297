"""What a new coordinator makes of what the one before it stored; crashes between any two writes."""

from __future__ import annotations

import pytest

from kbroker.coordinators.transactions.errors import ProducerFenced
from kbroker.coordinators.transactions.transaction import TransactionState

from .support import T0, T1, Simulation


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_crash_after_any_write_of_an_end_leaves_all_or_nothing(version: int, commit: bool) -> None:
    """The process dies after 0, 1, 2 writes: afterwards the transaction is open, or wholly ended."""
    for writes in range(3):
        simulation = Simulation(version=version)
        producer = simulation.init()
        simulation.add(producer, T0, T1, version=version)
        simulation.store.held = True
        ending = simulation.begin_end(producer, commit=commit, version=version)
        simulation.store.finish(min(writes, len(simulation.store.waiting)))
        answered = ending.done
        simulation.store.crash()
        simulation.start()
        if writes == 0:
            assert not answered
            assert simulation.transaction.state is TransactionState.ONGOING
            assert not simulation.partitions.told
            continue
        assert answered
        assert simulation.transaction.state is (
            TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        )
        for partition in (T0, T1):
            marker = ("commit" if commit else "abort", version // 2)
            assert set(simulation.partitions.markers(partition)) == {marker}


def test_partitions_that_were_not_told_are_told_after_the_start(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0, T1)
    simulation.partitions.failing = {T1}
    simulation.commit(producer)
    simulation.store.crash()
    simulation.partitions.failing = set()
    simulation.start()
    assert simulation.partitions.markers(T1) == [("commit", 0)]
    assert simulation.transaction.state is TransactionState.COMPLETE_COMMIT


def test_partitions_that_cannot_be_told_at_the_start_are_told_later(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.partitions.failing = {T0}
    simulation.commit(producer)
    simulation.start()
    assert simulation.transaction.is_prepared
    simulation.partitions.failing = set()
    simulation.pass_time(1000)
    assert simulation.transaction.state is TransactionState.COMPLETE_COMMIT


def test_an_open_transaction_goes_on_after_the_start(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.start()
    simulation.add(producer, T1)
    simulation.commit(producer)
    assert simulation.partitions.markers(T0) == simulation.partitions.markers(T1) == [("commit", 0)]


def test_an_open_transaction_times_out_after_the_start(simulation: Simulation) -> None:
    producer = simulation.init(timeout_ms=5000)
    simulation.add(producer, T0)
    simulation.start()
    simulation.pass_time(20_000)
    assert simulation.partitions.markers(T0) == [("abort", 1)]
    with pytest.raises(ProducerFenced):
        simulation.add(producer)


def test_a_new_producer_id_survives_the_crash_before_it_was_used(simulation: Simulation) -> None:
    old = simulation.set_state(producer_epoch=32766).producer
    simulation.add(old, T0, version=2)
    simulation.store.held = True
    ending = simulation.begin_end(old, version=2)
    simulation.store.finish(1)
    new = ending.result()
    simulation.store.crash()
    simulation.start()
    assert simulation.transaction.producer == new == (101, 0)
    assert simulation.commit(old, version=2) == new


def test_epochs_do_not_repeat_after_a_crash(simulation: Simulation) -> None:
    first = simulation.init()
    simulation.store.held = True
    simulation.begin_init()
    simulation.store.crash()
    simulation.start()
    assert simulation.init().producer_epoch == first.producer_epoch + 1
