"""Tells the participants of a transaction how it was decided: markers into the logs, groups their offsets.

A partition that is gone has nobody to tell. One that cannot take its marker now (no room on the disk, an
input/output error) is told again later by the coordinator. A marker that comes too late, because the log
has seen a newer epoch of the producer, has nothing left to end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction
from kbroker.pending import Pending, after
from kbroker.protocol.errors import ApiError
from kbroker.storage.errors import (
    InvalidProducerEpoch,
    LogDeleted,
    StorageError,
    TransactionCoordinatorFenced,
)
from kbroker.topics.names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from kbroker.broker import Broker

logger = logging.getLogger("kbroker.transactions")


_TOO_LATE = (InvalidProducerEpoch, TransactionCoordinatorFenced)
_NOTHING_TO_TELL = (ApiError, LogDeleted, *_TOO_LATE)  # a partition that is gone, a transaction that is over


class TransactionMarkers:
    """The Participants of the transaction coordinator."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def show_at_once(self, partitions: Collection[TopicPartition]) -> bool:
        """Markers do where logs show what is appended at once; a group's offsets have to be stored."""
        for topic, partition in dict(partitions).items():  # one of each topic: a config is a topic's
            if topic == OFFSETS_TOPIC:
                return False
            try:
                log = self._broker.find_log(topic, partition)
            except (ApiError, StorageError):
                continue  # it has nothing to show, or cannot be told now
            if not log.shows_at_once:
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
        except _NOTHING_TO_TELL as error:
            _nothing_told(transaction, partition, error)
            return None
        # The marker has its place: whatever of this producer comes now is behind it.
        self._broker.transactional_writes.transaction_ended(log, transaction.producer_id)
        if appended.durable is None:
            return None
        return after(
            appended.durable, lambda _: None, otherwise=partial(_nothing_told, transaction, partition)
        )


def _nothing_told(transaction: Transaction, partition: TopicPartition, error: Exception) -> None:
    """There is nobody to tell, or nothing to end. Any other error: it must be told again."""
    if not isinstance(error, _NOTHING_TO_TELL):
        raise error
    if isinstance(error, _TOO_LATE):
        _log_failure(transaction, (partition,), error)


def _log_failure(
    transaction: Transaction, partitions: Collection[TopicPartition], error: BaseException
) -> None:
    logger.warning(
        "%s: no marker in %s: %s",
        transaction.transactional_id,
        ", ".join(f"{topic}-{partition}" for topic, partition in partitions),
        error,
    )
