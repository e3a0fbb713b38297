"""Where a share partition begins that nobody has fetched from yet: share.auto.offset.reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.validators import duration_ms
from kbroker.pending import Pending, Steps, wait

if TYPE_CHECKING:
    from kbroker.storage.interface import Log

_BY_DURATION = "by_duration:"


def start_offset(log: Log, reset: str, now_ms: int) -> Steps[int]:
    refreshed = log.refresh()
    if refreshed is not None:
        yield from wait(refreshed)
    if reset == "earliest":
        return log.log_start_offset
    if reset.startswith(_BY_DURATION):
        found = log.offset_for_timestamp(now_ms - duration_ms(reset.removeprefix(_BY_DURATION)))
        if isinstance(found, Pending):
            found = yield from wait(found)
        if found is not None:
            return min(found.offset, log.high_watermark)
    return log.high_watermark
