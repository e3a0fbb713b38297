"""Images of the data directory: all logs and the catalog as they were at one moment, to be copied by somebody
(`kbroker backup`) while the broker goes on.

The moment is a turn of the loop: what the catalog was asked to write until then is in the image, and every
log up to its end, be it acknowledged or not. That is what would be left if the process died then, and so
whoever starts on a copy recovers as from that: transactions that were ending end, those that were open are
aborted, and no group has committed an offset that the logs do not have.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pending import Pending, Steps, run, wait
from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog
    from kbroker.config.settings import Settings
    from kbroker.scheduler import Scheduler
    from kbroker.storage.interface import Directory


class Image(NamedTuple):
    image_id: str
    path: str
    time_ms: int
    partitions: int
    removed_ms: int
    """When it goes if nobody removes it."""


class Images:
    def __init__(
        self,
        logs: Directory,
        catalog: Catalog,
        settings: Settings,
        scheduler: Scheduler,
        clock: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._catalog = catalog
        self._settings = settings
        self._scheduler = scheduler
        self._clock = clock
        self._images: dict[str, Image] = {}
        self._timers: dict[str, Callable[[], None]] = {}

    def make(self) -> Pending[Image]:
        image_id, time_ms = base64.b16encode(os.urandom(8)).decode().lower(), self._clock()
        begun = self._logs.begin_image(image_id)
        copied = self._catalog.copy(begun.path)  # in the same turn

        def steps() -> Steps[Image]:
            try:
                partitions = yield from wait(begun.finish())
                yield from wait(copied)
            except Exception:
                self._logs.remove_image(image_id)
                raise
            keep_ms: int = self._settings["kbroker.image.retention.ms"]
            image = Image(image_id, begun.path, time_ms, partitions, self._clock() + keep_ms)
            self._images[image_id] = image
            self._timers[image_id] = self._scheduler.after(keep_ms, lambda: self._expire(image_id))
            return image

        return run(steps())

    def all(self) -> list[Image]:
        return list(self._images.values())

    def remove(self, image_id: str) -> Pending[None]:
        if self._images.pop(image_id, None) is None:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"There is no image {image_id[:100]}.")
        self._timers.pop(image_id)()
        return self._logs.remove_image(image_id)

    def _expire(self, image_id: str) -> None:
        self._images.pop(image_id, None)
        self._timers.pop(image_id, None)
        self._logs.remove_image(image_id)
