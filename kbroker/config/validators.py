"""The rules that config values are held to. Each prints, for the documentation, the values it permits."""

from __future__ import annotations

import re

from kbroker.config.definition import ConfigValue, InvalidConfig, invalid

_THROTTLED = r"\s*[0-9]+\s*:\s*[0-9]+\s*"
_DURATION = (
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?"
)


class _Rule:
    __slots__ = ()
    distinct = False


class Range(_Rule):
    __slots__ = ("maximum", "minimum")

    def __init__(self, minimum: float, maximum: float | None = None) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, (int, float)):
            raise invalid(name, value, "is not a number")
        if value < self.minimum:
            raise invalid(name, value, f"is too small, the least is {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise invalid(name, value, f"is too large, the most is {self.maximum}")

    def __str__(self) -> str:
        return f"≥ {self.minimum}" if self.maximum is None else f"{self.minimum} … {self.maximum}"


class GzipLevel(_Rule):
    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int) or not (1 <= value <= 9 or value == -1):
            raise invalid(name, value, "is not a level: 1 to 9, or -1 for the usual one")

    def __str__(self) -> str:
        return "1 … 9 or -1"


class OneOf(_Rule):
    __slots__ = ("choices",)

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def check(self, name: str, value: ConfigValue) -> None:
        if value not in self.choices:
            raise invalid(name, value, f"is none of {self}")

    def __str__(self) -> str:
        return ", ".join(filter(None, self.choices))


class TraceSampling(_Rule):
    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if value in ("off", "parent"):
            return
        if not re.fullmatch(r"0(\.[0-9]+)?|1(\.0+)?", str(value)):
            raise invalid(name, value, "is neither off nor parent nor a number from 0 to 1")

    def __str__(self) -> str:
        return "off, parent, 0 … 1"


class HttpAddress(_Rule):
    """Scheme, host and port, and the beginning of paths if there is one."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        host = r"(\[[0-9a-fA-F:.]+\]|[^/\s:?#@\[\]]+)"
        found = re.fullmatch(rf"https?://{host}(:([0-9]{{1,5}}))?(/[^\s?#]*)?", str(value))
        if found is None or int(found[3] or 80) > 65535:
            raise invalid(name, value, "is no address such as http://127.0.0.1:4318")

    def __str__(self) -> str:
        return "http(s)://host:port"


class OneOfIgnoringCase(OneOf):
    """The choices stand in upper case."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in self.choices:
            raise invalid(name, value, f"is none of {', '.join(self.choices)}, in capitals or not")


class ListOf(_Rule):
    """A list without empty items, of the given choices if there are any. Repeated items are dropped."""

    __slots__ = ("allow_empty", "choices")
    distinct = True

    def __init__(self, *choices: str, allow_empty: bool = True) -> None:
        self.choices = choices
        self.allow_empty = allow_empty

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, tuple):
            return
        if not value and not self.allow_empty:
            choices = f"; it takes {', '.join(self.choices)}" if self.choices else ""
            raise InvalidConfig(f"{name}: the list is empty{choices}")
        for item in value:
            if not item:
                raise invalid(name, value, "has an empty item")
            if self.choices and item not in self.choices:
                raise invalid(name, item, f"is none of {', '.join(self.choices)}")

    def __str__(self) -> str:
        return f"list of {', '.join(self.choices)}" if self.choices else ""


class NonEmpty(_Rule):
    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if value == "":
            raise InvalidConfig(f"{name}: the value is empty")

    def __str__(self) -> str:
        return "not empty"


class Origins(ListOf):
    """What a browser says of the page that asks: scheme, host and port if it is not the usual one."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        super().check(name, value)
        for item in value if isinstance(value, tuple) else ():
            if item not in ("*", "null") and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s?#@*]+", item, re.I):
                raise invalid(name, item, "is no origin such as https://app.example:8443, nor *")

    def __str__(self) -> str:
        return "list of origins, or *"


class PortOrOff(_Rule):
    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.lower() == "off":
            return
        if not re.fullmatch(r"[0-9]{1,5}", value, re.ASCII) or int(value) > 65535:
            raise invalid(name, value, "is neither a port (0 to 65535) nor off")

    def __str__(self) -> str:
        return "0 … 65535 or off"


class SuperUsers(_Rule):
    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, str):
            return
        for user in filter(None, map(str.strip, value.split(";"))):
            if not re.fullmatch(r"[^:]+:.+", user):
                raise invalid(name, user, "is not a principal like User:alice")

    def __str__(self) -> str:
        return "User:NAME;…"


class ThrottledReplicas(_Rule):
    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, tuple) or value in ((), ("*",)):
            return
        if not all(re.fullmatch(_THROTTLED, item, re.ASCII) for item in value):
            raise invalid(name, value, "is neither * nor PARTITION:BROKER, separated by commas")

    def __str__(self) -> str:
        return "* or partition:broker, …"


class ShareOffsetReset(_Rule):
    """latest, earliest, or by_duration: followed by a non-negative ISO 8601 duration."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        if value in ("latest", "earliest"):
            return
        if isinstance(value, str) and value.startswith("by_duration:"):
            duration = value.removeprefix("by_duration:")
            if _is_duration(duration) and "-" not in duration:
                return
        raise invalid(name, value, "is none of latest, earliest and by_duration:DURATION, such as PT1H")

    def __str__(self) -> str:
        return "latest, earliest, by_duration:PnDTnHnMn.nS"


def _is_duration(text: str) -> bool:
    match = re.fullmatch(_DURATION, text, re.IGNORECASE | re.ASCII)
    if match is None or (match[3] or "").upper() == "T":
        return False
    return any(match[group] is not None for group in (2, 4, 5, 6))


def duration_ms(text: str) -> int:
    """Of a duration that ShareOffsetReset permits."""
    match = re.fullmatch(_DURATION, text, re.IGNORECASE | re.ASCII)
    if match is None:
        raise ValueError(f"{text} is no ISO 8601 duration")
    days, hours, minutes, seconds = (int(match[group] or 0) for group in (2, 4, 5, 6))
    fraction_ms = int((match[7] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms
