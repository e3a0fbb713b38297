"""The end of a session that no connection stands for, such as a stream's: who lasts is told once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.authentication.logins import Logins

_LONGEST_TIMER_MS = 3_600_000


class SessionWatch:
    """Of a session that begins now (logins.py: LoggedIn)."""

    def __init__(
        self,
        logins: Logins,
        user: str | None,
        expires_ms: int | None,
        most_ms: int,
        on_end: Callable[[str], None],
    ) -> None:
        """``user``: whose password it is based on. ``expires_ms``: when its token ends. ``most_ms``: how long
        it may last; 0: for ever.
        """
        self._logins = logins
        self._user = user
        self._on_end = on_end
        self._clock = logins.broker.clock
        self._cancel: Callable[[], None] | None = None
        ends = [] if expires_ms is None else [(expires_ms, "the token has expired")]
        if most_ms > 0:
            ends.append((self._clock() + most_ms, "the session has lasted for connections.max.reauth.ms"))
        if ends:
            self._wait(*min(ends))
        if user is not None:
            logins.remember(user, self)

    def _wait(self, ends_ms: int, reason: str) -> None:
        def look() -> None:
            self._cancel = None
            if self._clock() < ends_ms:
                self._wait(ends_ms, reason)
            else:
                self._over(reason)

        left_ms = max(ends_ms - self._clock(), 0)
        self._cancel = self._logins.broker.scheduler.after(min(left_ms, _LONGEST_TIMER_MS), look)

    def leave(self) -> None:
        self._over("the password was changed")

    def _over(self, reason: str) -> None:
        self.end()
        self._on_end(reason)

    def end(self) -> None:
        """It is over, or nobody needs to know."""
        if self._user is not None:
            self._logins.forget(self._user, self)
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
