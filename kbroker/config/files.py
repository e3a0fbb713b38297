"""Settings files: YAML with flat or nested keys, or Kafka's own server.properties.

A file ending in .properties is read as Java reads properties; every other one as YAML.
"""

from __future__ import annotations

import re
from pathlib import Path

from kbroker.config.errors import SettingError

_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = r"(?s)((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)"


def is_properties(path: Path) -> bool:
    return path.suffix == ".properties"


def read(path: Path) -> dict[str, str]:
    """Names and values as texts, in the file's order."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise SettingError(f"cannot read {path}: it is not UTF-8 text") from None
    return parse_properties(text) if is_properties(path) else parse_yaml(text, path)


def parse_properties(text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\n|\r", text))
    for line in lines:
        line = line.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(" \t\f")
        match = re.fullmatch(_KEY, line)
        if match is not None:
            settings[_unescape(match[1])] = _unescape(match[2])
    return settings


def parse_yaml(text: str, path: Path) -> dict[str, str]:
    import yaml  # some 20 ms, only paid by those who have a YAML file

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise SettingError(f"{path}{where}: not YAML: {getattr(error, 'problem', None) or error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingError(
            f"{path}: expected settings as 'name: value'; a Kafka properties file must end in .properties"
        )
    settings: dict[str, str] = {}
    _flatten("", document, settings, path)
    return settings


def _flatten(prefix: str, mapping: dict[object, object], settings: dict[str, str], path: Path) -> None:
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _flatten(f"{name}.", value, settings, path)
        elif value is not None:
            if name in settings:
                raise SettingError(f"{path}: {name} is set twice")
            settings[name] = ",".join(map(_scalar, value)) if isinstance(value, list) else _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _CONTROL.get(escaped, escaped)

    return re.sub(_ESCAPE, replace, text) if "\\" in text else text
