"""What a config is: its name, type, default, permitted values and doc line.

A value has two forms: the text a client or a file wrote, and the typed value the broker works with (LIST is a
tuple of strings, CLASS a class name, PASSWORD a string). ``ConfigDef.parse`` turns text into value or raises
``InvalidConfig``, which names the config, the text and what is allowed; ``to_text`` goes back, as Kafka
prints it.

Definitions are named tuples in plain tables, and patterns are compiled when first used: hundreds of them
are made at every start, and few are asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

from kbroker.protocol.errors import ApiError, ErrorCode

ConfigValue = bool | int | float | str | tuple[str, ...] | None

_BITS = {"INT": 32, "SHORT": 16, "LONG": 64}
_INTEGER = r"[+-]?[0-9]+"
_DOUBLE = r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)"
_COMMA = r"\s*,\s*"


class ConfigType(IntEnum):
    """The numbers are those of DescribeConfigs' config_type."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG = (ConfigType(n) for n in range(1, 6))
DOUBLE, LIST, CLASS, PASSWORD = (ConfigType(n) for n in range(6, 10))

MAX_INT = (1 << 31) - 1
MAX_LONG = (1 << 63) - 1


class Update(IntEnum):
    """When a broker config may change: never at run time, for one broker, or also for the whole cluster."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


class InvalidConfig(ApiError, ValueError):
    """A value that its definition refuses."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, message)


class Validator(Protocol):
    @property
    def distinct(self) -> bool:
        """Whether a list loses its repeated items before it is checked."""

    def check(self, name: str, value: ConfigValue) -> None:
        """Raise InvalidConfig if the typed value is not permitted."""


class Field(NamedTuple):
    """Where a config's value goes: a field of a dataclass that a part of the broker obeys (LogConfig, say).

    ``Settings.typed`` fills the dataclass. The config's default is that of the field: it stands in the
    dataclass and nowhere else. A definition that names a field which is not there raises at import.
    """

    of: type
    name: str

    @property
    def default(self) -> ConfigValue:
        default = self._in_field()
        if isinstance(default, frozenset):
            return tuple(sorted(default))
        return default  # type: ignore[no-any-return]  # typed in the dataclass

    def held(self, value: ConfigValue) -> object:
        """The value as the field holds it: a LIST as a set, if the field is one."""
        return (
            frozenset(value)
            if isinstance(value, tuple) and isinstance(self._in_field(), frozenset)
            else value
        )

    def _in_field(self) -> Any:
        fields = getattr(self.of, "__dataclass_fields__", {})
        if self.name not in fields:
            raise LookupError(f"{self.of.__name__} has no field {self.name} for a config")
        return fields[self.name].default


class ConfigDef(NamedTuple):
    name: str
    type: ConfigType
    default: ConfigValue
    doc: str
    validator: Validator | None = None
    update: Update = Update.READ_ONLY
    synonyms: tuple[str, ...] = ()
    """For a topic config, the broker configs that are its default, the strongest first."""
    internal: bool = False
    """Accepted, but not shown by DescribeConfigs unless it was set."""
    unset: str = ""
    """What kbroker does unless it was set, where that is no value: the default is then Kafka's, for show."""
    applies: bool = True
    """Whether the config does something in kbroker; otherwise it is accepted and shown, no more."""
    protects: bool = False
    """Whether it promises a protection that kbroker does not give: then only its default is taken."""
    field: Field | None = None
    """Where its value goes, if not to readers of ``settings["name"]``."""

    @property
    def sensitive(self) -> bool:
        return self.type is PASSWORD

    @property
    def read_only(self) -> bool:
        return self.update == Update.READ_ONLY

    def parse(self, text: str) -> ConfigValue:
        value = parse_type(self.name, text, self.type)
        if self.validator is not None:
            if self.type is LIST and isinstance(value, tuple) and self.validator.distinct:
                value = tuple(dict.fromkeys(value))
            self.validator.check(self.name, value)
        return value


def honoured(
    name: str,
    type_: ConfigType,
    default: ConfigValue | Field,
    doc: str,
    validator: Validator | None = None,
    update: Update = Update.READ_ONLY,
    synonyms: tuple[str, ...] = (),
    internal: bool = False,
    unset: str = "",
) -> ConfigDef:
    """A config that does something in kbroker: code reads it by its name, or reads the field it goes to."""
    field = default if isinstance(default, Field) else None
    value = default.default if isinstance(default, Field) else default
    return ConfigDef(name, type_, value, doc, validator, update, synonyms, internal, unset, field=field)


accepted = partial(ConfigDef, applies=False)
"""A config that is taken and shown, so that Kafka's files and tools work, and does nothing."""

protective = partial(ConfigDef, applies=False, protects=True)
"""A config that says who may come in, what they may do or use, or with what key to encrypt.

kbroker does none of it, and whoever set it would believe that it does: anything but the default, which
promises nothing, is refused. How such a thing is done in detail (ciphers, time limits) is ``accepted``.
Once it does something, it is ``honoured``.
"""


def table(*parts: Iterable[ConfigDef]) -> dict[str, ConfigDef]:
    return {definition.name: definition for part in parts for definition in part}


def invalid(name: str, value: ConfigValue, problem: str) -> InvalidConfig:
    return InvalidConfig(f'{name}: "{to_text(value)}" {problem}')


def parse_type(name: str, text: str, type_: ConfigType) -> ConfigValue:
    """The typed value of a text, before its validator has looked at it."""
    trimmed = text.strip()
    if type_ is BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise invalid(name, text, "is neither true nor false")
        return lowered == "true"
    if type_ in (INT, SHORT, LONG):
        if re.fullmatch(_INTEGER, trimmed) is None:
            raise invalid(name, text, "is not a whole number")
        bits = _BITS[type_.name]
        limit = 1 << (bits - 1)
        # Python refuses to make an integer of thousands of digits.
        if len(trimmed) < 100 and -limit <= int(trimmed) < limit:
            return int(trimmed)
        raise invalid(name, text, f"is not a number of {bits} bits")
    if type_ is DOUBLE:
        if not re.fullmatch(_DOUBLE, trimmed):
            raise invalid(name, text, "is not a number")
        return float(trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" else trimmed)
    if type_ is LIST:
        return tuple(re.split(_COMMA, trimmed)) if trimmed else ()
    return trimmed


def to_text(value: ConfigValue) -> str | None:
    """A typed value as Kafka prints it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    """Java writes 0.001 <= |x| < 10^7 in plain decimals and everything else as d.dddE<exponent>."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    exponent = int(f"{value:e}".partition("e")[2])
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
