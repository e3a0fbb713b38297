"""Principals: who a client is."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """A type and a name, as in `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""A client of a listener that asks nobody who they are."""
