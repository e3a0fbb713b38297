"""The client of a broker's control port: one line of JSON there, one back."""

from __future__ import annotations

import json
import socket
from typing import Any


class ControlError(Exception):
    """The broker refused, and says why."""


class ControlClient:
    def __init__(self, port: int, timeout: float = 30) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._lines = self._socket.makefile("rb")

    def do(self, action: str, **arguments: Any) -> Any:
        self._socket.sendall(json.dumps({"do": action, **arguments}).encode() + b"\n")
        line = self._lines.readline()
        if not line:
            raise ControlError("the broker is gone")
        answer = json.loads(line)
        if not answer["ok"]:
            raise ControlError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._lines.close()
        self._socket.close()
