"""Checks of passwords that are kept as SCRAM credentials: milliseconds of work each, off the event loop.

One check runs at a time, so that guessing cannot take the worker threads from the logs. A password that was
right is remembered by a keyed hash, as long as its credential is the same: clients that come back do not
queue behind those who guess.
"""

from __future__ import annotations

import hmac
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.pending import Pending
from kbroker.security.scram_credentials import ScramCredential, has_password

if TYPE_CHECKING:
    from kbroker.storage.worker import Worker

_MOST_REMEMBERED = 10_000


class Passwords:
    def __init__(self, worker: Worker, secret: bytes) -> None:
        self._worker = worker
        self._secret = secret
        self._right: dict[str, tuple[ScramCredential, bytes]] = {}
        self._queue: deque[Callable[[], bool]] = deque()
        self._busy = False

    def check(
        self, name: str, mechanism: str, credential: ScramCredential, password: str
    ) -> bool | Pending[bool]:
        digest = hmac.digest(self._secret, f"{name}\0{password}".encode(errors="surrogatepass"), "sha256")
        known = self._right.get(name)
        if known is not None and known[0] == credential and hmac.compare_digest(known[1], digest):
            return True
        return self._later(name, mechanism, credential, password, digest)

    def _later(
        self, name: str, mechanism: str, credential: ScramCredential, password: str, digest: bytes
    ) -> Pending[bool]:
        result: Pending[bool] = Pending()

        def begin() -> bool:
            if result.abandoned:
                return False
            checking = self._worker.run(lambda: has_password(mechanism, credential, password))
            checking.then(ended)
            return True

        def ended(checking: Pending[bool]) -> None:
            if checking.succeeded and checking.result():
                if len(self._right) >= _MOST_REMEMBERED:
                    del self._right[next(iter(self._right))]
                self._right[name] = (credential, digest)
            result.follow(checking)
            self._next()

        self._queue.append(begin)
        if not self._busy:
            self._busy = True
            self._next()
        return result

    def _next(self) -> None:
        """Begin the next check that somebody still waits for."""
        while self._queue:
            if self._queue.popleft()():
                return
        self._busy = False
