"""The transaction coordinator, given what it needs of the broker: settings, catalog, logs, groups, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.deadlines import Deadlines
from kbroker.coordinators.timers import Timers
from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
from kbroker.coordinators.transactions.environment import TransactionEnvironment, TransactionSettings
from kbroker.pending import Pending
from kbroker.transactions.markers import TransactionMarkers

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.config.settings import Settings


def open_transactions(broker: Broker) -> TransactionCoordinator:
    """The coordinator with all it knew before the last stop, ticking.

    What was decided then and not carried out is carried out here, before there is anybody to read.
    """
    timers = Timers()
    coordinator = TransactionCoordinator(
        TransactionEnvironment(
            store=broker.catalog.transaction_store(broker.scheduler),
            participants=TransactionMarkers(broker),
            allocate_producer_id=lambda: _allocate_producer_id(broker),
            transaction_version=lambda: broker.features.level("transaction.version"),
            settings=transaction_settings(broker.settings),
            timers=timers,
        )
    )
    deadlines = Deadlines(broker.scheduler, broker.clock, coordinator.tick, coordinator.next_deadline)
    broker.deadlines.append(deadlines)
    timers.on_sooner = lambda: broker.scheduler.soon(deadlines.arm)
    coordinator.load(broker.clock())
    return coordinator


def _allocate_producer_id(broker: Broker) -> Pending[int]:
    allocated = broker.producer_ids.allocate()
    return allocated if isinstance(allocated, Pending) else Pending.resolved(allocated)


def transaction_settings(settings: Settings) -> TransactionSettings:
    """What the transaction coordinator obeys of the settings in force."""
    return TransactionSettings(
        transaction_max_timeout_ms=settings["transaction.max.timeout.ms"],
        transactional_id_expiration_ms=settings["transactional.id.expiration.ms"],
        transaction_abort_timed_out_transaction_cleanup_interval_ms=(
            settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        ),
        transaction_remove_expired_transaction_cleanup_interval_ms=(
            settings["transaction.remove.expired.transaction.cleanup.interval.ms"]
        ),
    )
