"""An HTTP client of tests: one connection, kept open, and answers that are easy to look at."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def media_type(self) -> str:
        return self.headers.get_content_type()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:300]!r}"


class HttpClient:
    def __init__(self, url: str, timeout: float = 30, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        self.url = url
        self._connection = (
            http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=timeout)
        )

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        json_body: Any = None,
    ) -> Answer:
        sent = dict(headers or {})
        if json_body is not None:
            body = json.dumps(json_body)
            sent.setdefault("Content-Type", "application/json")
        self._connection.request(method, path, body, sent)
        return Answer(self._connection.getresponse())

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})

    def post(self, path: str, json_body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("POST", path, headers=headers, json_body=json_body)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
