from __future__ import annotations

import pytest

from kbroker.coordinators.transactions.errors import InvalidRequest, TransactionalIdNotFound

from .support import ID, T0, Simulation


def listed(simulation: Simulation, states=(), producer_ids=(), duration_ms=-1) -> list[str]:
    found = simulation.coordinator.list_transactions(states, producer_ids, duration_ms, simulation.now_ms)
    return [transaction.transactional_id for transaction in found]


def test_describing_needs_a_transactional_id_that_exists(simulation: Simulation) -> None:
    with pytest.raises(InvalidRequest):
        simulation.coordinator.describe("")
    with pytest.raises(TransactionalIdNotFound):
        simulation.coordinator.describe(ID)


def test_transactions_are_filtered_by_state_and_producer_id(simulation: Simulation) -> None:
    producer = simulation.init()
    assert listed(simulation) == [ID]
    assert listed(simulation, ["Empty", "Ongoing"]) == [ID]
    assert listed(simulation, ["Ongoing"]) == []
    assert listed(simulation, ["Nonsense"]) == []
    assert listed(simulation, producer_ids=[producer.producer_id]) == [ID]
    assert listed(simulation, producer_ids=[7]) == []


def test_the_duration_filter_leaves_out_what_began_lately(simulation: Simulation) -> None:
    producer = simulation.init()
    simulation.add(producer, T0)
    simulation.pass_time(500)
    assert listed(simulation, duration_ms=499) == [ID]
    assert listed(simulation, duration_ms=500) == []
    assert listed(simulation, duration_ms=-1) == [ID]
