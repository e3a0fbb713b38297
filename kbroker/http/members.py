"""JSON objects that clients send, member by member. What is missing or of another type is a Problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbroker.http.problems import Problem

_INT32 = (-(1 << 31), (1 << 31) - 1)
_INT64 = (-(1 << 63), (1 << 63) - 1)
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "a number"}


class Members:
    """Of one object; ``where`` says in messages which one it is."""

    __slots__ = ("_members", "_where")

    def __init__(self, value: Any, where: str = "the body") -> None:
        if not isinstance(value, dict):
            raise Problem(400, f"{_upper(where)} must be a JSON object.")
        self._members = value
        self._where = where

    def only(self, *names: str) -> Members:
        """The same, if it has no other members: a name that is misspelt must not be ignored."""
        unknown = [name for name in self._members if name not in names]
        if unknown:
            raise Problem(
                400,
                f"{_upper(self._where)} has the member {unknown[0][:100]!r}; known are {', '.join(names)}.",
            )
        return self

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise Problem(400, f"{_upper(self._where)} needs the member {name!r}, a string.")
        return value

    def optional_text(self, name: str) -> str | None:
        value: str | None = self._typed(name, str)
        return value

    def integer(self, name: str) -> int:
        value = self.optional_integer(name)
        if value is None:
            raise Problem(400, f"{_upper(self._where)} needs the member {name!r}, a whole number.")
        return value

    def optional_integer(self, name: str) -> int | None:
        """One of 32 bits."""
        value = self._members.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not _INT32[0] <= value <= _INT32[1]:
            raise Problem(400, f"{name!r} in {self._where} must be a whole number of 32 bits.")
        return value

    def natural(self, name: str) -> int:
        """One of 32 bits that is not negative, such as a partition."""
        value = self.integer(name)
        if value < 0:
            raise Problem(400, f"{name!r} in {self._where} must be 0 or more.")
        return value

    def long(self, name: str) -> int:
        """One of 64 bits, such as an offset or a time."""
        value = self._members.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not _INT64[0] <= value <= _INT64[1]:
            raise Problem(400, f"{_upper(self._where)} needs the member {name!r}, a whole number of 64 bits.")
        return value

    def boolean(self, name: str) -> bool:
        """False where it is missing."""
        return bool(self._typed(name, bool))

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Empty where it is missing."""
        value: Mapping[str, Any] | None = self._typed(name, dict)
        return {} if value is None else value

    def items(self, name: str) -> list[Any]:
        """Of a list; none where it is missing."""
        value: list[Any] | None = self._typed(name, list)
        return [] if value is None else value

    def required_items(self, name: str) -> list[Any]:
        if self._members.get(name) is None:
            raise Problem(400, f"{_upper(self._where)} needs the member {name!r}, a list.")
        return self.items(name)

    def get(self, name: str) -> Any:
        return self._members.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def _typed(self, name: str, kind: type) -> Any:
        value = self._members.get(name)
        if value is not None and not isinstance(value, kind):
            raise Problem(400, f"{name!r} in {self._where} must be {_KINDS[kind]}.")
        return value


def config_text(name: str, value: Any) -> str:
    """The value of a config as Kafka has it: a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise Problem(
        400, f"The config {name[:100]!r} must be a string, a number, true, false or a list of strings."
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
