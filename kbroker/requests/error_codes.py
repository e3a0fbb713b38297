"""The error codes in an answer, counted by a function that is made of its declaration, as codecs are.

Lists that are worked out while they are encoded (`lazily`) are counted then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kbroker.protocol.message import schema_of
from kbroker.protocol.types import Array
from kbroker.requests.long_requests import Lazy

Count = Callable[[Any, dict[int, int]], None]

_ERROR_CODE = "error_code"

_counts: dict[type[Any], Count | None] = {}


def count_of(cls: type[Any]) -> Count | None:
    """None: the message has no error codes."""
    try:
        return _counts[cls]
    except KeyError:
        count = _counts[cls] = _made(cls)
        return count


def _made(cls: type[Any]) -> Count | None:
    lines = []
    names: dict[str, Any] = {"count_list": _count_list}
    for field in schema_of(cls):
        if field.name == _ERROR_CODE:
            lines.append(" if m.error_code: counts[int(m.error_code)] += 1")
        elif isinstance(field.type, Array) and isinstance(field.type.of, type):
            inner = count_of(field.type.of)
            if inner is not None:
                names[f"count_{field.name}"] = inner
                lines.append(f" if m.{field.name}: count_list(m, '{field.name}', count_{field.name}, counts)")
    if not lines:
        return None
    source = "def count(m, counts):\n" + "\n".join(lines)
    exec(source, names)
    made: Count = names["count"]
    return made


def _count_list(message: Any, name: str, count: Count, counts: dict[int, int]) -> None:
    entries = getattr(message, name)
    if isinstance(entries, Lazy):
        setattr(message, name, entries.seen_by(lambda entry: count(entry, counts)))
        return
    for entry in entries:
        count(entry, counts)
