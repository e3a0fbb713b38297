"""Transactional ids that the broker makes up for those who bring none.

Each is one user's, which its name says, so that it is theirs after a restart, too. It is used again when
others of theirs are over, too: a transactional id lives for a week, and each has a producer id in the logs.
One that was made before the last start is not. So who did not hear how their commit went can still ask after
a restart, unless they have ended as many since.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final
from uuid import uuid4

if TYPE_CHECKING:
    from kbroker.security.principal import Principal

RESERVED: Final = "__kbroker-"
"""No client chooses a transactional id that begins like this, as long as it comes by these operations."""
_PREFIX: Final = f"{RESERVED}transaction-"
_RESTING: Final = 16


class OwnIds:
    def __init__(self) -> None:
        self._run = uuid4().hex[:16]
        self._made = 0
        self._free: dict[str, deque[str]] = {}  # by owner, the one that was used last at the end

    def take(self, owner: Principal | None) -> str:
        free = self._free.get(_name(owner))
        if free is not None and len(free) > _RESTING:
            return free.popleft()
        self._made += 1
        return f"{_PREFIX}{self._run}-{self._made}-{_name(owner)}"

    def give_back(self, transactional_id: str, owner: Principal | None) -> None:
        self._free.setdefault(_name(owner), deque()).append(transactional_id)


def is_of(user: Principal | None, transactional_id: str) -> bool:
    """Whether it was made up for this user."""
    if not transactional_id.startswith(_PREFIX):
        return False
    _, *owner = transactional_id.removeprefix(_PREFIX).split("-", 2)
    return owner[1:] == [_name(user)]


def _name(user: Principal | None) -> str:
    return "" if user is None else str(user)
