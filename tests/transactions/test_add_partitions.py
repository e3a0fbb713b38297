from __future__ import annotations

import pytest

from kbroker.coordinators.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidRequest,
    ProducerFenced,
    TransactionAbortable,
)
from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch, TransactionState

from .support import ID, T0, T1, Simulation


def test_the_first_partition_begins_the_transaction(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.pass_time(500)
    simulation.add(producer, T0)
    began = simulation.now_ms
    simulation.pass_time(500)
    simulation.add(producer, T1)
    transaction = simulation.transaction
    assert transaction.state is TransactionState.ONGOING
    assert transaction.partitions == {T0, T1}
    assert transaction.start_ms == began


def test_partitions_that_are_in_it_already_cost_no_write(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0, T1)
    writes = len(simulation.store.history)
    simulation.add(producer, T1)
    assert len(simulation.store.history) == writes


def test_a_partition_is_in_the_transaction_once_that_is_stored(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.store.held = True
    adding = simulation.begin_add(producer, T0)
    errors = simulation.coordinator.verify_partitions(ID, producer, [T0])
    assert isinstance(errors[T0], TransactionAbortable)
    simulation.store.finish()
    adding.result()
    assert simulation.coordinator.verify_partitions(ID, producer, [T0]) == {T0: None}


def test_a_failed_write_leaves_the_partition_out(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.store.held = True
    adding = simulation.begin_add(producer, T0)
    simulation.store.finish(error=OSError("no space"))
    with pytest.raises(CoordinatorNotAvailable):
        adding.result()
    assert simulation.transaction.state is TransactionState.EMPTY


def test_only_the_producer_that_has_the_transactional_id_may_add(simulation: Simulation) -> None:
    with pytest.raises(InvalidProducerIdMapping):
        simulation.add(ProducerIdAndEpoch(101, 0))
    producer = simulation.init()
    with pytest.raises(InvalidProducerIdMapping):
        simulation.add(ProducerIdAndEpoch(7, 0))
    with pytest.raises(ProducerFenced):
        simulation.add(ProducerIdAndEpoch(producer.producer_id, 1))
    simulation.init()
    with pytest.raises(ProducerFenced):
        simulation.add(producer)


def test_an_empty_transactional_id_is_refused(simulation: Simulation) -> None:
    nobody = ProducerIdAndEpoch(1, 0)
    with pytest.raises(InvalidRequest):
        simulation.coordinator.add_partitions("", nobody, [T0], 0, 0).result()
    with pytest.raises(InvalidRequest):
        simulation.coordinator.verify_partitions("", nobody, [T0])


def test_verifying_tells_which_partitions_are_in_the_transaction(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    errors = simulation.coordinator.verify_partitions(ID, producer, [T0, T1])
    assert errors[T0] is None
    assert isinstance(errors[T1], TransactionAbortable)


def test_after_the_end_no_partition_is_in_it(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.commit(producer)
    errors = simulation.coordinator.verify_partitions(ID, producer, [T0])
    assert isinstance(errors[T0], TransactionAbortable)


def test_while_the_transaction_is_being_ended_nothing_is_added(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.partitions.failing = {T0}
    simulation.commit(producer)
    with pytest.raises(ConcurrentTransactions):
        simulation.add(producer, T1)
    with pytest.raises(ConcurrentTransactions):
        simulation.coordinator.verify_partitions(ID, producer, [T0])


def test_the_next_transaction_begins_anew(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.commit(producer)
    simulation.pass_time(1000)
    simulation.add(producer, T1)
    assert simulation.transaction.partitions == {T1}
    assert simulation.transaction.start_ms == simulation.now_ms
