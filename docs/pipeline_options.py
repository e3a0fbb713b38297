"""Writes the tables of options into docs/pipeline.md: `python -m docs.pipeline_options`."""

from __future__ import annotations

from pathlib import Path

from kbroker.pipeline.options import REQUIRED, SECTIONS, Option

TARGET = Path(__file__).with_name("pipeline.md")
BEGIN, END = "<!-- options: written by docs/pipeline_options.py -->\n", "<!-- end of options -->\n"


def text() -> str:
    """The page as it should be: what is written by hand, and the tables."""
    before, rest = TARGET.read_text().split(BEGIN)
    return before + BEGIN + tables() + END + rest.split(END)[1]


def tables() -> str:
    parts = []
    for section in SECTIONS:
        rows = "".join(
            f"| `{option.name}` | {_kind(option)} | {_default(option)} | {option.doc} |\n"
            for option in section.options
        )
        parts.append(
            f"\n### {section.title}\n\n| option | value | default | what it does |\n|---|---|---|---|\n{rows}"
        )
    return "".join(parts) + "\n"


_KINDS = {
    "name": "a name",
    "text": "text",
    "texts": "text, or a list",
    "integer": "number",
    "boolean": "true, false",
    "duration": "`10 minutes`",
    "trigger": "`available_now`, `10 seconds`, `continuous 1 second`",
    "mapping": "mapping",
    "any": "see there",
    "schema": "mapping or DDL",
    "document": "inline or a file",
    "rules": "list",
    "section": "mapping",
    "sections": "mapping",
}


def _kind(option: Option) -> str:
    kind, _, detail = option.kind.partition(":")
    return ", ".join(f"`{each}`" for each in detail.split(",")) if kind == "choice" else _KINDS[kind]


def _default(option: Option) -> str:
    if option.default is REQUIRED:
        return "needed"
    if option.default is None or option.default in ((), {}):
        return ""
    return f"`{str(option.default).lower() if isinstance(option.default, bool) else option.default}`"


if __name__ == "__main__":
    TARGET.write_text(text())
