"""The answer to a request that as a whole failed: its error code wherever the response has room for one.

Responses repeat the shape of their requests: a list of topics with lists of partitions, a list of groups, of
resources. So the lists are mirrored, what identifies an entry is copied, and each entry gets the code.
Handlers whose response says more than that have a ``refuse`` of their own.
"""

from __future__ import annotations

from typing import Any

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.types import Array

_ERROR = frozenset(("error_code", "error_message"))
# What identifies an entry, where request and response name it differently.
_SYNONYMS = (
    frozenset(("partition", "partition_index", "index")),
    frozenset(("name", "topic", "topic_name")),
    frozenset(("group_id", "group")),
)


def refusal(
    request: Any, response_type: type[Any], version: int, code: ErrorCode, message: str | None = None
) -> Any:
    response = response_type()
    _fill(request, response, version, code, message)
    return response


def _fill(asked: Any, answer: Any, version: int, code: ErrorCode, message: str | None) -> None:
    for field in schema_of(type(answer)).fields:
        if not field.present(version):
            continue
        if field.name == "error_code":
            answer.error_code = code
        elif field.name == "error_message":
            if message is not None:
                answer.error_message = message
        elif isinstance(field.type, Array) and isinstance(field.type.of, type) and _has_error(field.type.of):
            setattr(answer, field.name, _mirror(asked, field.type.of, version, code, message))


def _mirror(
    asked: Any, entry_type: type[Any], version: int, code: ErrorCode, message: str | None
) -> list[Any]:
    entries = []
    for item in _first_list(asked, version):
        entry = entry_type()
        for field in schema_of(entry_type).fields:
            if field.present(version) and field.name not in _ERROR and not isinstance(field.type, Array):
                _copy(item, entry, field)
        _fill(item, entry, version, code, message)
        entries.append(entry)
    return entries


def _first_list(asked: Any, version: int) -> list[Any]:
    if not hasattr(asked, "__schema__"):
        return []
    for field in schema_of(type(asked)).fields:
        if field.present(version) and isinstance(field.type, Array):
            value: list[Any] | None = getattr(asked, field.name)
            if value:
                return value
    return []


def _copy(item: Any, entry: Any, field: Field) -> None:
    if not hasattr(item, "__schema__"):  # a plain name or number: it is what the entry is about
        identity = next(each for each in schema_of(type(entry)).fields if each.name not in _ERROR)
        if _is_identity(identity, item):
            setattr(entry, identity.name, item)
        return
    names = next((names for names in _SYNONYMS if field.name in names), frozenset((field.name,)))
    for known in schema_of(type(item)).fields:
        if known.name in names and known.type is field.type:
            setattr(entry, field.name, getattr(item, known.name))


def _is_identity(field: Field, item: Any) -> bool:
    default = field.default_value()
    return isinstance(item, str if default is None else type(default))


def _has_error(entry_type: type[Any]) -> bool:
    """Whether an entry, or an entry of a list in it, says what went wrong."""
    for field in schema_of(entry_type).fields:
        if field.name == "error_code":
            return True
        if isinstance(field.type, Array) and isinstance(field.type.of, type) and _has_error(field.type.of):
            return True
    return False
