"""What a line of the log tells besides its text, and how it looks as text.

Fields come along as `extra` of the call that logs. Nothing that clients send stands in a line but names and
ids: no keys, values, headers or passwords. What they chose themselves cannot break a line in two.
"""

from __future__ import annotations

import logging
import re
from typing import Any

FIELDS = ("connection", "peer", "request", "api", "client", "left_out")
"""connection: its number since the start; peer: the address of the client; request: the correlation id of a
Kafka request, the X-Request-Id of one by HTTP; client: the client id; left_out: lines like this one.
"""
_SHOWN = ("connection", "request")  # in text, where addresses and names mostly stand in the message
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    values = record.__dict__
    return {name: values[name] for name in FIELDS if values.get(name) is not None}


def one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = one_line(record.message)
        text = super().formatMessage(record)
        fields = fields_of(record)
        shown = " ".join(f"{name} {one_line(str(fields[name]))}" for name in _SHOWN if name in fields)
        return f"{text} [{shown}]" if shown else text
