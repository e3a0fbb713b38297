"""A client of server-sent events for tests: it reads a stream line by line, as browsers do."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit


@dataclass(slots=True)
class Event:
    name: str
    data: str
    id: str
    """The last event id, once this event is there."""

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class EventStream:
    """``last_id`` is what the next connection would send as Last-Event-ID."""

    def __init__(
        self,
        url: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = 30,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        self._connection = (
            http.client.HTTPConnection(host, port, timeout=timeout)
            if tls is None
            else http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)
        )
        self._connection.request("GET", path, headers={"Accept": "text/event-stream", **(headers or {})})
        self.response = self._connection.getresponse()
        self.status = self.response.status
        self.last_id = ""
        self.comments = 0
        self.retry = 0

    def blocks(self) -> Iterator[Event | None]:
        """Each block of lines; None: one that is no event, and may have moved the id."""
        name, data = "message", []
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            field, _, value = text.partition(": ")
            if not text:
                yield Event(name, "\n".join(data), self.last_id) if data else None
                name, data = "message", []
            elif text.startswith(":"):
                self.comments += 1
            elif field == "id":
                self.last_id = value
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif field == "retry":
                self.retry = int(value)

    def events(self) -> Iterator[Event]:
        return (each for each in self.blocks() if each is not None)

    def records(self, count: int) -> list[Any]:
        """The next ones, as JSON."""
        found: list[Any] = []
        for event in self.events():
            assert event.name == "message", event
            found.append(event.json)
            if len(found) == count:
                break
        return found

    def begun(self) -> Self:
        """Once the stream has its position: what is written from now on is read."""
        next(self.blocks())
        return self

    def problem(self) -> Any:
        return json.loads(self.response.read())

    def close(self) -> None:
        self.response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
