"""The topics that a member of a group subscribes to by name: how many, and whether it may see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources

_MOST_TOPICS = 20_000  # of a member: they take some tens of milliseconds, be they there or not


def check_subscription(resources: Resources, names: Sequence[str] | None) -> None:
    """None: as before."""
    if names is None:
        return
    if len(names) > _MOST_TOPICS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"A member subscribes to at most {_MOST_TOPICS} topics.")
    for name in names if resources.restricted else ():
        resources.check_topic(AclOperation.DESCRIBE, name)
