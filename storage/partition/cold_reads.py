"""Reads that may need the disk: tried at once, and again when a worker has loaded what was not in the cache.

The worker only loads (and searches a batch that hides much), so that nearly all thinking stays on the
caller's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from kbroker.pending import Pending
from kbroker.storage.errors import StorageError
from kbroker.storage.files import Files, WouldBlock
from kbroker.storage.worker import Worker
from kbroker.times import Times

T = TypeVar("T")
Attempt = Callable[[bool, bool], T]

_TRIES = 3  # then whatever the page cache lost again is waited for


class ColdReads:
    __slots__ = ("_failed", "_files", "_times", "_worker")

    def __init__(
        self, files: Files, worker: Worker, failed: Callable[[OSError], StorageError], times: Times
    ) -> None:
        """``times``: where it is counted how long they take."""
        self._times = times
        self._files = files
        self._worker = worker
        self._failed = failed  # makes of an I/O error what the log says of it

    def now_or_later(self, attempt: Attempt[T]) -> T | Pending[T]:
        """The result of `attempt(wait, loaded)`, which raises WouldBlock unless it may wait for the disk.

        `loaded`: what it wanted before was loaded.
        """
        try:
            return attempt(False, False)
        except WouldBlock as cold:
            pending: Pending[T] = Pending()
            self._warm(cold, attempt, pending, 1)
            return pending
        except OSError as error:
            raise self._failed(error) from error

    def _warm(self, cold: WouldBlock, attempt: Attempt[T], pending: Pending[T], tries: int) -> None:
        files = self._files
        began = perf_counter()

        def warmed(result: Pending[None]) -> None:
            self._times.add(perf_counter() - began)
            if pending.done:
                return
            try:
                result.result()
                value = attempt(tries >= _TRIES or not files.answers_from_cache, True)
            except WouldBlock as again:
                self._warm(again, attempt, pending, tries + 1)
            except OSError as error:
                pending.fail(self._failed(error))
            except Exception as error:
                pending.fail(error)
            else:
                pending.resolve(value)

        self._worker.run(lambda: cold.load(files)).then(warmed)
