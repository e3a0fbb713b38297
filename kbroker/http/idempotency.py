"""Requests with an Idempotency-Key: one that comes again is answered as the first time, and does nothing.

A key belongs to who sends it, for kbroker.http.idempotency.window.ms. Another request with the same key is
refused: the client has mixed up something.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kbroker.http.answers import Response
from kbroker.http.endpoint import Parameter
from kbroker.http.problems import Problem
from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_CONDITIONS: Final = ("content-type", "if-match", "x-origin-id", "x-origin-sequence")  # of a request
_HASHED_AT_ONCE: Final = 512 * 1024  # bytes
PARAMETER = Parameter(
    "Idempotency-Key",
    "Send the same request with the same key again within kbroker.http.idempotency.window.ms, "
    "and it is answered as before.",
    {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"},
    "header",
)


async def once(request: HttpRequest, work: Callable[[], Awaitable[Response]]) -> Response:
    """The answer of the work, which is done unless it was done before for this key."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return await work()
    if not _KEY.fullmatch(key):
        raise Problem(400, "An Idempotency-Key has 1 to 255 visible characters of ASCII.")
    fingerprint = await _fingerprint(request)
    repeats, owner = request.broker.publishing.repeats, str(request.caller.principal)
    window_ms: int = request.broker.settings["kbroker.http.idempotency.window.ms"]
    found = repeats.find(owner, key, request.now_ms, window_ms)
    if found is not None:
        if found.fingerprint != fingerprint:
            raise Problem(
                422,
                "This Idempotency-Key came with another request before: take a new key for a new request.",
            )
        status, body, media_type = await settled(found.followed())
        return Response(body, status, {"idempotent-replayed": "true"}, media_type)
    repeats.begin(owner, key, fingerprint, request.now_ms)
    try:
        answer = await work()
    except BaseException as error:
        # Repetitions that wait get the same failure; the next one tries again.
        repeats.failed(owner, key, error if isinstance(error, Exception) else Problem(503, "Send it again."))
        raise
    body = bytes(answer.body)
    repeats.succeeded(owner, key, (answer.status_code, body, answer.media_type), len(body))
    return answer


async def _fingerprint(request: HttpRequest) -> bytes:
    body, scope = await request.body(), request.scope
    conditions = [request.headers.get(name, "").encode("latin-1") for name in _CONDITIONS]
    head = b"\n".join((scope["method"].encode(), scope["raw_path"], scope["query_string"], *conditions, b""))

    def digest() -> bytes:
        return hashlib.sha256(head + body).digest()

    if len(body) <= _HASHED_AT_ONCE:
        return digest()
    return await settled(request.broker.worker.run(digest))
