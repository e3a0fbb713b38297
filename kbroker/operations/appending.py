"""Appending a batch to a log; one that takes long is decompressed on a worker, within the budget, and looked
into in turns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from kbroker.pending import wait
from kbroker.protocol.records import MAX_DECOMPRESSED_BYTES, DecompressedTooLarge
from kbroker.requests.long_requests import Steps, holding
from kbroker.storage.interface import TakesLong

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.storage.interface import Appended, Log, LongAppend

_LIKELY_RATIO = 16  # what compressed records mostly make at most, of their bytes
_LIKELY_BYTES = 1024 * 1024


def append(
    broker: Broker, log: Log, batch: memoryview, now_ms: int, expected_offset: int | None = None
) -> Steps[Appended]:
    """One batch of format 2, as its leader. Mostly without a pause.

    ``expected_offset``: UnexpectedOffset if the batch would get another one, see the log's interface.
    """
    try:
        return log.append_as_leader(batch, now_ms, expected_offset)
    except TakesLong:
        pass
    batch = memoryview(bytearray(batch))  # what it is a view of may not outlive a pause
    likely = max(_LIKELY_RATIO * len(batch), _LIKELY_BYTES)

    def within(limit: int) -> Steps[Appended]:
        steps = log.append_in_steps(batch, now_ms, expected_offset)
        return holding(broker.budget, min(limit, broker.budget.limit // 2), _taken(broker, steps, limit))

    try:
        return (yield from within(min(likely, MAX_DECOMPRESSED_BYTES)))
    except DecompressedTooLarge:
        return (yield from within(MAX_DECOMPRESSED_BYTES))


def _taken(broker: Broker, steps: LongAppend, limit: int) -> Steps[Appended]:
    try:
        work = next(steps)
        while True:
            if work is None:
                yield None
                work = steps.send(b"")
            else:
                work = steps.send((yield from wait(broker.worker.run(partial(work, limit)))))
    except StopIteration as end:
        return cast("Appended", end.value)
