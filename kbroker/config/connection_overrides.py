"""max.connections.per.ip.overrides: ``host:count``, separated by commas. IPv6 may stand in brackets."""

from __future__ import annotations

import re

from kbroker.config.definition import ConfigValue, invalid

_NAME = "max.connections.per.ip.overrides"
_PAIR = r"\[?([^\[\]]*[^\[\]\s])\]?\s*:\s*([0-9]{1,9})"


class ConnectionOverrides:
    """Whether a text is such a list."""

    __slots__ = ()
    distinct = False

    def check(self, name: str, value: ConfigValue) -> None:
        if isinstance(value, str):
            parse_overrides(value)

    def __str__(self) -> str:
        return "host:count, …"


def parse_overrides(text: str) -> dict[str, int]:
    """Hosts, as addresses or names, to the connections that each may have. Raises InvalidConfig."""
    limits: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(_PAIR, pair, re.ASCII)
        if match is None:
            raise invalid(_NAME, pair, "is not HOST:COUNT")
        limits[match[1]] = int(match[2])
    return limits
