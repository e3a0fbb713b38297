"""The kinds of values that options.py names, and how each is read from the file.

Every kind is a function of the value, the kind's detail (what follows the colon) and the file's directory; it
raises ValueError with what it expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbroker.pipeline import schemas
from kbroker.pipeline.document import Value
from kbroker.pipeline.durations import milliseconds
from kbroker.pipeline.spec import Trigger
from kbroker.pipeline.suggestions import suggestion

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def convert(kind: str, value: Value, base: Path) -> Any:
    name, _, detail = kind.partition(":")
    return _KINDS[name](value, detail, base)


def _text(value: Value, _detail: str = "", _base: Path = Path()) -> str:
    if isinstance(value.data, dict | list | bool):
        raise ValueError(f"a text, not {described(value.data)}")
    return str(value.data)


def _name(value: Value, _detail: str = "", _base: Path = Path()) -> str:
    text = _text(value)
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name: letters, digits, - and _ only")
    return text


def _texts(value: Value, _detail: str = "", _base: Path = Path()) -> list[str]:
    if isinstance(value.data, list):
        return [_text(each) for each in value.data]
    return [_text(value)]


def _integer(value: Value, _detail: str = "", _base: Path = Path()) -> int:
    if not isinstance(value.data, int) or isinstance(value.data, bool) or value.data < 1:
        raise ValueError(f"a number from 1, not {value.plain()!r}")
    return value.data


def _boolean(value: Value, _detail: str = "", _base: Path = Path()) -> bool:
    if not isinstance(value.data, bool):
        raise ValueError(f"true or false, not {value.plain()!r}")
    return value.data


def _choice(value: Value, detail: str, _base: Path) -> str:
    allowed = detail.split(",")
    text = _text(value)
    if text not in allowed:
        raise ValueError(f"one of {', '.join(allowed)}, not {text!r}{suggestion(text, allowed)}")
    return text


def _duration(value: Value, _detail: str = "", _base: Path = Path()) -> str:
    text = _text(value)
    milliseconds(text)
    return text


def _trigger(value: Value, _detail: str = "", _base: Path = Path()) -> Trigger:
    text = _text(value)
    if text == "available_now":
        return Trigger("available_now")
    continuous, space, interval = text.partition(" ")
    if continuous == "continuous" and space:
        milliseconds(interval)
        return Trigger("continuous", interval)
    try:
        milliseconds(text)
    except ValueError:
        raise ValueError(
            f"available_now, an interval such as '10 seconds', or 'continuous 1 second', not {text!r}"
        ) from None
    return Trigger("interval", text)


def _mapping(value: Value, _detail: str = "", _base: Path = Path()) -> dict[str, str]:
    if not isinstance(value.data, dict):
        raise ValueError(f"a mapping, not {described(value.data)}")
    return {name: _as_option(each.plain()) for name, each in value.data.items()}


def _schema(value: Value, _detail: str = "", _base: Path = Path()) -> str:
    plain = value.plain()
    if isinstance(plain, dict):
        return schemas.from_mapping(plain)
    if isinstance(plain, str):
        return schemas.from_ddl(plain)
    raise ValueError("columns as a mapping of name to type, or DDL in one text")


def _document(value: Value, _detail: str, base: Path) -> Any:
    """Inline, or the content of a JSON file."""
    if not isinstance(value.data, str):
        return value.plain()
    file = base / value.data
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{file} is no JSON: {error}") from None


def _any(value: Value, _detail: str = "", _base: Path = Path()) -> Any:
    return value.plain()


def _rules(value: Value, _detail: str = "", _base: Path = Path()) -> Value:
    return value


def _section(value: Value, _detail: str = "", _base: Path = Path()) -> Value:
    return value


def _sections(value: Value, _detail: str = "", _base: Path = Path()) -> Value:
    if not isinstance(value.data, dict) or not value.data:
        raise ValueError("a mapping of names to sections")
    return value


def _as_option(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def described(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


_KINDS: dict[str, Callable[[Value, str, Path], Any]] = {
    "text": _text,
    "name": _name,
    "texts": _texts,
    "integer": _integer,
    "boolean": _boolean,
    "choice": _choice,
    "duration": _duration,
    "trigger": _trigger,
    "mapping": _mapping,
    "schema": _schema,
    "document": _document,
    "any": _any,
    "rules": _rules,
    "section": _section,
    "sections": _sections,
}
