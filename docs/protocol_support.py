"""Writes docs/protocol-support.md from the API table: `python -m docs.protocol_support`."""

from __future__ import annotations

import importlib
from pathlib import Path

from kbroker.protocol.message import schema_of
from kbroker.protocol.messages import API_NAMES, request_type
from kbroker.requests.apis import APIS, BY_KEY, CLIENT_TELEMETRY

TARGET = Path(__file__).with_name("protocol-support.md")

_HEAD = """\
# Protocol support

Derived from the API table in kbroker/requests/apis.py by docs/protocol_support.py. Versions below those of
Apache Kafka 4.3 are kept for clients that still send them.

| key | API | versions | what it does |
|---|---|---|---|
"""

_MISSING = """
## Not implemented, and not advertised

The messages of these APIs are declared in protocol/messages/, no handler answers them: a request closes the
connection, as a Kafka does that lacks the API.

| key | API | versions in Kafka 4.3 |
|---|---|---|
"""


def text() -> str:
    rows = []
    for api in sorted(APIS):
        handler = importlib.import_module(f"kbroker.handlers.{api.module}")
        summary = (handler.__doc__ or "").split("\n\n")[0].partition(": ")[2].replace("\n", " ").strip()
        if api.feature == CLIENT_TELEMETRY:
            summary += " Not with kbroker.telemetry.enable=false."
        rows.append(f"| {api.key} | {api.name} | {_range(api.min_version, api.max_version)} | {summary} |")
    missing = [
        f"| {key} | {name} | {_range(*schema_of(request_type(key)).versions)} |"
        for key, name in sorted(API_NAMES.items())
        if key not in BY_KEY
    ]
    return _HEAD + "\n".join(rows) + "\n" + (_MISSING + "\n".join(missing) + "\n" if missing else "")


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


if __name__ == "__main__":
    TARGET.write_text(text())
