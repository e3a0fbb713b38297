"""The OpenAPI document and the page that shows it, for anybody: both are the same in every broker.

The document is made with the first request for it. The page is one file without anything from elsewhere.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from kbroker.http import table
from kbroker.http.answers import bytes_answer
from kbroker.http.endpoint import OBJECT, STRING, Answer, Endpoint, json_answer_of
from kbroker.http.openapi import steps
from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

_made: list[bytes] = []
"""The document, once it is made."""


async def document(request: HttpRequest) -> Response:
    if not _made:
        _made.append(await settled(request.broker.long_requests.run(steps(table.endpoints()))))
    return bytes_answer(_made[0], "application/json")


async def page(request: HttpRequest) -> Response:
    body, policy = _page()
    return bytes_answer(body, "text/html; charset=utf-8", headers={"content-security-policy": policy})


@cache
def _page() -> tuple[bytes, str]:
    """With what a browser may do on it: run its script and ask this broker."""
    text = files("kbroker.http").joinpath("documentation.html").read_text(encoding="utf-8")
    hashes = {
        kind: b64encode(
            sha256("".join(re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)).encode()).digest()
        )
        for kind in ("script", "style")
    }
    policy = "; ".join(
        (
            "default-src 'none'",
            "base-uri 'none'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            *(f"{kind}-src 'sha256-{digest.decode()}'" for kind, digest in hashes.items()),
        )
    )
    return text.encode(), policy


_TAG = "documentation"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/openapi.json",
        document,
        "This document.",
        answers={200: json_answer_of("OpenAPI 3.1.", OBJECT)},
        public=True,
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/docs",
        page,
        "The document as a page to read.",
        answers={200: Answer("A page.", {"text/html": STRING})},
        public=True,
        tag=_TAG,
    ),
)
