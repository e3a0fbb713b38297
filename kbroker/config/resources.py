"""What configs belong to, and how a request changes them, in the protocol's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: int
    """As sent, so that a number which is no Operation can be refused."""
    value: str | None


def is_operation(number: int) -> bool:
    return number in Operation.__members__.values()


def apply_to_list(operation: Operation, current: str, value: str) -> str:
    """The text of a LIST config after an APPEND or a SUBTRACT."""
    items = [item for item in split(current) if item]
    for item in split(value):
        if operation is Operation.APPEND and item not in items:
            items.append(item)
        elif operation is Operation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def split(text: str) -> list[str]:
    """At commas, as Java does it: empty items at the end do not count, but an empty text is one item."""
    items = text.split(",")
    while len(items) > 1 and not items[-1]:
        items.pop()
    return items


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """What has to be set, and removed (None), to get from one to the other."""
    changes: dict[str, str | None] = {name: None for name in old if name not in new}
    changes.update((name, value) for name, value in new.items() if old.get(name) != value)
    return changes


def repeated(names: Sequence[str]) -> list[str]:
    """Those that stand there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]
