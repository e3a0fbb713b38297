"""Acknowledging records of share partitions: checked, changed, and answered when it is stored.

Within a partition it is all or nothing; partitions do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.shares.acknowledging import check_form
from kbroker.coordinators.shares.partition import (
    Acknowledgement,
    AcknowledgeType,
    InvalidAcknowledgement,
    InvalidRecordState,
)
from kbroker.coordinators.shares.store import NotOwner, ShareKey
from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.coordinators.shares.partition import Change
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.requests.share_sessions import Partition
    from kbroker.shares.live import LiveShare
    from kbroker.shares.registry import Failures, Shares

Acknowledgements = Mapping["Partition", Sequence[Acknowledgement]]


class Outcome(NamedTuple):
    code: ErrorCode
    message: str | None = None


Outcomes = dict["Partition", Outcome]

_DONE = Outcome(ErrorCode.NONE)


class Acknowledging:
    """The acknowledgements of one request."""

    def __init__(
        self, resources: Resources, shares: Shares, group_id: str, member_id: str, last_type: AcknowledgeType
    ) -> None:
        """``last_type``: the highest that the request may use."""
        self._resources = resources
        self._shares = shares
        self._group_id = group_id
        self._member_id = member_id
        self._last_type = last_type

    def run(self, acknowledgements: Acknowledgements) -> Outcomes | Pending[Outcomes]:
        """All at once."""
        steps = self.run_in_steps(acknowledgements)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            result: Outcomes | Pending[Outcomes] = end.value
        return result

    def run_in_steps(self, acknowledgements: Acknowledgements) -> Steps[Outcomes | Pending[Outcomes]]:
        """The same; others have their turn in between."""
        outcomes: Outcomes = {}
        acknowledges = any(acknowledgements.values())
        changes: list[tuple[LiveShare, Change]] = []
        for partition, batches in acknowledgements.items():
            try:
                change = self._apply(partition, batches)
            except Exception as error:
                outcomes[partition] = _outcome(error)
            else:
                if acknowledges:  # else Kafka, too, tells only what is wrong
                    outcomes[partition] = _DONE
                if change is not None:
                    changes.append(change)
            yield None
        if not changes:
            return outcomes

        def stored(failures: Failures) -> Outcomes:
            for key, error in failures.items():
                outcomes[key[1:]] = _outcome(error)
            return outcomes

        return mapped(self._shares.store(changes), stored)

    def _apply(
        self, partition: Partition, batches: Sequence[Acknowledgement]
    ) -> tuple[LiveShare, Change] | None:
        topic = self._resources.topic(partition[0], AclOperation.READ)
        self._resources.log_of(topic, partition[1])
        if not batches:
            return None
        check_form(batches, self._last_type)
        live = self._shares.get(ShareKey(self._group_id, *partition))
        if live is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Nobody has fetched from this partition.")
        change = live.partition.acknowledge(self._member_id, batches, self._shares.clock())
        self._shares.arm(live)
        return None if change is None else (live, change)


def _outcome(error: Exception) -> Outcome:
    if isinstance(error, InvalidAcknowledgement):
        return Outcome(ErrorCode.INVALID_REQUEST, str(error) or None)
    if isinstance(error, InvalidRecordState):
        return Outcome(ErrorCode.INVALID_RECORD_STATE, str(error) or None)
    if isinstance(error, NotOwner):
        return Outcome(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return Outcome(*describe(error))
