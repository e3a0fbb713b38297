"""Long answers, made of many records: written in pieces, and not put together.

A piece counts in the budget from when it is made until the answer is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from kbroker.http.answers import Response, raw_headers

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from kbroker.http.request import HttpRequest
    from kbroker.protocol.records import Record
    from kbroker.requests.long_requests import Steps

T = TypeVar("T")

_PER_PAUSE: Final = 16
_PIECE_BYTES: Final = 256 * 1024
_PUT_TOGETHER: Final = 4  # pieces
_RECORD_BYTES: Final = 300  # of Python's objects


def written(
    request: HttpRequest,
    items: Iterable[T],
    write: Callable[[T], bytes | Steps[bytes]],
    between: bytes = b",",
    *,
    may_end_early: bool = False,
) -> Steps[tuple[list[bytes], int]]:
    """Pieces, and of how many items; ``may_end_early``: behind the first where the budget has no more."""
    budget = request.broker.budget
    pieces: list[bytes] = []
    parts: list[bytes] = []
    size = count = 0
    for item in items:
        if may_end_early and count and budget.used > budget.limit:
            break
        part = write(item)
        if not isinstance(part, bytes):
            part = yield from part
        parts += (between, part) if count else (part,)
        size += len(part)
        count += 1
        if size >= _PIECE_BYTES:
            request.hold(size)
            pieces.append(b"".join(parts))
            parts, size = [], 0
        if not count % _PER_PAUSE:
            yield None
    request.hold(size)
    pieces.append(b"".join(parts))
    return pieces, count


def held_bytes(records: Iterable[Record]) -> int:
    """About what they take in memory."""
    return sum([_RECORD_BYTES + len(each.key or b"") + len(each.value or b"") for each in records])


def answer_of(pieces: list[bytes], media_type: str, headers: Mapping[str, str] | None = None) -> Response:
    if len(pieces) <= _PUT_TOGETHER:
        return Response(b"".join(pieces), 200, headers, media_type)
    return _Pieces(pieces, media_type, headers)


class _Pieces(Response):
    """Each is let go of when it goes out."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: list[bytes], media_type: str, headers: Mapping[str, str] | None) -> None:
        super().__init__(None, 200, headers, media_type)
        self.headers["content-length"] = str(sum([len(piece) for piece in pieces]))
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = raw_headers(self.headers)
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        self._pieces.reverse()
        while self._pieces:
            await send({"type": "http.response.body", "body": self._pieces.pop(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
