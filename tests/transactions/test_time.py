"""Timeouts of transactions, expiry of transactional ids."""

from __future__ import annotations

import pytest

from kbroker.coordinators.transactions.errors import (
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionalIdNotFound,
)
from kbroker.coordinators.transactions.transaction import TransactionState

from .support import T0, Simulation

DAY_MS = 86_400_000


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_past_its_timeout_is_aborted_and_its_producer_fenced(version: int) -> None:
    simulation = Simulation(version=version)
    producer = simulation.init(timeout_ms=15_000)
    simulation.add(producer, T0)
    simulation.pass_time(15_000)
    assert simulation.transaction.state is TransactionState.ONGOING
    simulation.pass_time(10_000)
    assert simulation.transaction.state is TransactionState.COMPLETE_ABORT
    assert simulation.partitions.markers(T0) == [("abort", 1)]
    with pytest.raises(ProducerFenced):
        simulation.commit(producer)


def test_a_producer_of_version_2_may_abort_what_was_aborted_for_it_but_not_commit(
    simulation: Simulation,
) -> None:
    producer = simulation.init(timeout_ms=1000)
    simulation.add(producer, T0, version=2)
    simulation.pass_time(20_000)
    with pytest.raises(InvalidTxnState):
        simulation.commit(producer, version=2)
    assert simulation.abort(producer, version=2).producer_epoch == 1


def test_the_timeout_counts_from_the_first_partition(simulation: Simulation) -> None:
    producer = simulation.init(timeout_ms=20_000)
    simulation.pass_time(60_000)
    simulation.add(producer, T0)
    simulation.pass_time(20_000)
    assert simulation.transaction.state is TransactionState.ONGOING
    simulation.commit(producer)
    simulation.pass_time(60_000)
    assert simulation.transaction.state is TransactionState.COMPLETE_COMMIT


def test_an_abort_that_could_not_be_stored_is_tried_again(simulation: Simulation) -> None:
    producer = simulation.init(timeout_ms=1000)
    simulation.add(producer, T0)
    simulation.store.held = True
    simulation.pass_time(10_000)
    simulation.store.finish(error=OSError("no space"))
    assert simulation.transaction.state is TransactionState.ONGOING
    simulation.store.held = False
    simulation.pass_time(10_000)
    assert simulation.transaction.state is TransactionState.COMPLETE_ABORT


def test_a_commit_under_way_wins_over_the_timeout(simulation: Simulation) -> None:
    producer = simulation.init(timeout_ms=1000)
    simulation.add(producer, T0)
    simulation.store.held = True
    committing = simulation.begin_end(producer)
    simulation.pass_time(10_000)
    simulation.store.held = False
    simulation.store.finish()
    committing.result()
    simulation.pass_time(10_000)
    assert simulation.partitions.markers(T0) == [("commit", 0)]


def test_an_unused_transactional_id_is_forgotten(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.commit(producer)
    simulation.pass_time(7 * DAY_MS - 1)
    assert simulation.transaction.producer == producer
    simulation.pass_time(3_600_000)
    with pytest.raises(TransactionalIdNotFound):
        _ = simulation.transaction
    assert simulation.store.load() == []
    with pytest.raises(InvalidProducerIdMapping):
        simulation.add(producer)
    assert simulation.init(producer).producer_epoch == 0


def test_an_open_or_prepared_transaction_does_not_expire() -> None:
    simulation = Simulation(transactional_id_expiration_ms=1000)
    producer = simulation.init(timeout_ms=900_000)
    simulation.add(producer, T0)
    simulation.partitions.failing = {T0}
    simulation.commit(producer)
    simulation.pass_time(7_200_000)
    assert simulation.transaction.is_prepared


def test_what_cannot_be_deleted_stays(simulation: Simulation) -> None:
    simulation.init()
    simulation.store.held = True
    simulation.pass_time(8 * DAY_MS)
    waiting = simulation.begin_init()
    simulation.store.finish(error=OSError("no space"))
    assert simulation.transaction.producer_epoch == 0
    simulation.store.finish()
    assert waiting.result().producer_epoch == 1


def test_a_day_of_a_thousand_transactions_in_a_moment() -> None:
    simulation = Simulation()
    producer = simulation.init(timeout_ms=30_000)
    for number in range(1000):
        simulation.add(producer, T0, version=2)
        if number % 10:
            producer = simulation.end(producer, commit=number % 3 == 0, version=2)
            simulation.pass_time(60_000)
        else:
            simulation.pass_time(86_400)
            producer = simulation.abort(producer, version=2)
    assert len(simulation.partitions.told) == 1000
    assert producer.producer_epoch == 1000
