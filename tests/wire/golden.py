"""Frames that real clients and a real Apache Kafka 4.3.1 sent: those of tests/protocol/golden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from kbroker.protocol.messages import API_NAMES, module_name

GOLDEN = Path(__file__).parents[1] / "protocol" / "golden"


class Exchange(NamedTuple):
    api_key: int
    version: int
    request: bytes
    response: bytes


def exchanges(*names: str) -> list[Exchange]:
    """Of the named APIs, or of all."""
    return [
        Exchange(key, each["version"], bytes.fromhex(each["request"]), bytes.fromhex(each["response"]))
        for key, name in API_NAMES.items()
        if (not names or name in names) and (GOLDEN / f"{module_name(name)}.json").exists()
        for each in json.loads((GOLDEN / f"{module_name(name)}.json").read_text())
    ]


def exchange(name: str, version: int) -> Exchange:
    return next(each for each in exchanges(name) if each.version == version)


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame
