"""Tells the participants of a transaction how it was decided: markers into the logs, groups their offsets.

A partition that is gone has nobody to tell. One that cannot take its marker now (no room on the disk, an
input/output error) is told again later by the coordinator. A marker that comes too late, because the log
has seen a newer epoch of the producer, has nothing left to end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError
from kbroker.storage.errors import (
    InvalidProducerEpoch,
    LogDeleted,
    StorageError,
    TransactionCoordinatorFenced,
)
from kbroker.transactions.offsets_partition import OFFSETS_TOPIC

if TYPE_CHECKING:
    from kbroker.broker import Broker

logger = logging.getLogger("kbroker.transactions")


class TransactionMarkers:
    """The Participants of the transaction coordinator."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._fsync = broker.settings["kbroker.fsync"]

    def show_at_once(self, partitions: Collection[TopicPartition]) -> bool:
        """Markers do, unless they have to be on the disk first; a group's offsets have to be stored."""
        if self._fsync:
            return False
        for topic, partition in dict(partitions).items():  # one of each topic: a config is a topic's
            if topic == OFFSETS_TOPIC:
                return False
            try:
                log = self._broker.find_log(topic, partition)
            except (ApiError, StorageError):
                continue  # it has nothing to show, or cannot be told now
            if log.config.flush_messages <= 1:
                return False
        return True

    def end(
        self, transaction: Transaction, partitions: Collection[TopicPartition], now_ms: int
    ) -> Pending[frozenset[TopicPartition]]:
        result: Pending[frozenset[TopicPartition]] = Pending()
        left: set[TopicPartition] = set()
        missing = 1  # this loop itself

        def settled(told: Collection[TopicPartition], outcome: Pending[None] | None) -> None:
            nonlocal missing
            if outcome is not None:
                try:
                    outcome.result()
                except Exception as error:
                    _log_failure(transaction, told, error)
                    left.update(told)
            missing -= 1
            if not missing:
                result.resolve(frozenset(left))

        for told, shown in self._tell(transaction, partitions, now_ms, left):
            missing += 1
            shown.then(lambda outcome, told=told: settled(told, outcome))  # type: ignore[misc]
        settled((), None)
        return result

    def _tell(
        self,
        transaction: Transaction,
        partitions: Collection[TopicPartition],
        now_ms: int,
        left: set[TopicPartition],
    ) -> list[tuple[list[TopicPartition], Pending[None]]]:
        """What was told but does not show yet; what could not be told goes to ``left``."""
        shows_later: list[tuple[list[TopicPartition], Pending[None]]] = []
        offsets = [partition for partition in partitions if partition.topic == OFFSETS_TOPIC]
        for partition in partitions:
            if partition.topic == OFFSETS_TOPIC:
                continue
            try:
                durable = self._mark(transaction, partition, now_ms)
            except Exception as error:
                _log_failure(transaction, (partition,), error)
                left.add(partition)
                continue
            if durable is not None:
                shows_later.append(([partition], durable))
        if offsets:
            ended = self._broker.groups.offsets.end_transaction(
                transaction.producer_id, commit=transaction.commits
            )
            shows_later.append((offsets, ended))
        return shows_later

    def _mark(self, transaction: Transaction, partition: TopicPartition, now_ms: int) -> Pending[None] | None:
        try:
            log = self._broker.find_log(*partition)
            appended = log.append_control(
                transaction.producer_id,
                transaction.producer_epoch,
                commit=transaction.commits,
                coordinator_epoch=self._broker.cluster.unclean_starts,
                now_ms=now_ms,
                transaction_version=transaction.transaction_version,
            )
        except (ApiError, LogDeleted):
            return None  # the partition is gone
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            _log_failure(transaction, (partition,), error)
            return None
        self._broker.transactional_writes.transaction_ended(log, transaction.producer_id)
        return appended.durable


def _log_failure(
    transaction: Transaction, partitions: Collection[TopicPartition], error: BaseException
) -> None:
    logger.warning(
        "%s: no marker in %s: %s",
        transaction.transactional_id,
        ", ".join(f"{topic}-{partition}" for topic, partition in partitions),
        error,
    )
