"""A share partition with the log, the store and the clock that it is without."""

from __future__ import annotations

from collections.abc import Sequence

from kbroker.coordinators.shares.acknowledging import check_form
from kbroker.coordinators.shares.partition import (
    Acknowledgement,
    AcknowledgeType,
    Acquired,
    AcquireMode,
    Change,
    LogBatch,
    SharePartition,
)
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import ShareState, ShareStateChange, merged

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
GAP, RENEW = AcknowledgeType.GAP, AcknowledgeType.RENEW
LOCK_MS = 30_000


class Driver:
    """`batches`: those of the log. What is to be stored is, at once, unless `settles` is switched off."""

    def __init__(
        self,
        batches: Sequence[tuple[int, int]] = (),
        stored: ShareState | None = None,
        settings: ShareSettings | None = None,
    ) -> None:
        self.batches = [LogBatch(*each) for each in batches]
        self.settings = settings or ShareSettings()
        self.now_ms = 1_000
        self.stored = stored or ShareState(0)
        self.written: list[ShareStateChange] = []
        self.settles = True
        self.woken = 0
        self.partition = self._opened()

    def _opened(self) -> SharePartition:
        partition = SharePartition(self.stored, lambda: self.settings)
        partition.on_available = self._wake
        return partition

    def _wake(self) -> None:
        self.woken += 1

    def restart(self) -> None:
        """After kill -9: what is stored is what there is."""
        self.partition = self._opened()

    def fetch(
        self,
        member: str = "a",
        max_records: int = 500,
        *,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        batch_size: int = 500,
        aborted: Sequence[tuple[int, int]] = (),
        up_to: int | None = None,
    ) -> list[tuple[int, int, int]]:
        offset = self.partition.next_fetch_offset()
        if offset is None:
            return []
        read = [each for each in self.batches if each.last_offset >= offset]
        if up_to is not None:
            read = [each for each in read if each.first_offset <= up_to]
        acquired, change = self.partition.acquire(
            member,
            read,
            fetch_offset=offset,
            max_records=max_records,
            batch_size=batch_size,
            mode=mode,
            aborted=aborted,
            now_ms=self.now_ms,
        )
        self.finish(change)
        return [tuple(each) for each in acquired]

    def acknowledge(self, *ranges: tuple[int, int, int | Sequence[int]], member: str = "a") -> Change | None:
        batches = [
            Acknowledgement(first, last, [types] if isinstance(types, int) else types)
            for first, last, types in ranges
        ]
        check_form(batches)
        return self.finish(self.partition.acknowledge(member, batches, self.now_ms))

    def release(self, member: str = "a") -> Change | None:
        return self.finish(self.partition.release(self.partition.leases_of(member), self.now_ms))

    def wait(self, milliseconds: int) -> Change | None:
        self.now_ms += milliseconds
        return self.finish(self.partition.expire(self.now_ms))

    def move_log_start(self, offset: int) -> Change | None:
        self.batches = [each for each in self.batches if each.last_offset >= offset]
        return self.finish(self.partition.log_start_moved(offset, self.now_ms))

    def finish(self, change: Change | None) -> Change | None:
        if change is not None and self.settles:
            self.settle(change)
        return change

    def settle(self, change: Change, *, stored: bool = True) -> None:
        if stored and change.state is not None:
            self.written.append(change.state)
            self.stored = merged(self.stored, [change.state])
        self.partition.settle(change, stored=stored, now_ms=self.now_ms)

    @property
    def window(self) -> tuple[int, int]:
        return self.partition.start_offset, self.partition.end_offset


def numbers(acquired: Sequence[tuple[int, int, int] | Acquired]) -> list[int]:
    return [offset for first, last, _ in acquired for offset in range(first, last + 1)]
