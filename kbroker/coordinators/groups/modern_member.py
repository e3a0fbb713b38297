"""What members of consumer groups and of share groups have in common: an immutable value, replaced as a whole
when anything about it changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class ModernMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""


M = TypeVar("M", bound="DataclassInstance")


def with_news(member: M, said: Mapping[str, Any]) -> M:
    """The member with what was said of it, None being nothing; the same object if that is nothing new."""
    news = {
        name: value for name, value in said.items() if value is not None and value != getattr(member, name)
    }
    return replace(member, **news) if news else member
