"""JSON as it is sent and stored: without spaces, and without NaN and Infinity, which it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kbroker.http.json_documents import LongDict, LongList, is_long

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

_TOGETHER: Final = 16  # members that are short, written between two pauses
_CHARACTERS: Final = 64 * 1024


def _writer(*, ascii_only: bool) -> Callable[[Any, int], Iterable[str]]:
    """The encoder that JSONEncoder makes anew for each call, made once: half the time of a small document."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # a Python without the C module
        encode = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":")).encode
        return lambda document, _: (encode(document),)
    texts = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    encoder: Callable[[Any, int], Iterable[str]] = make(
        None, None, texts, None, ":", ",", False, False, False
    )
    return encoder


_parts: Final = _writer(ascii_only=False)
_ascii_parts: Final = _writer(ascii_only=True)


def compact(document: Any) -> str:
    """ValueError: it has a number that JSON does not know. RecursionError: it is nested too deeply."""
    return "".join(_parts(document, 0))


def compact_bytes(document: Any) -> bytes:
    """The same in UTF-8."""
    try:
        return "".join(_parts(document, 0)).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: JSON can say that, UTF-8 cannot
        return "".join(_ascii_parts(document, 0)).encode()


def compact_in_steps(document: Any) -> Steps[bytes]:
    """The same of what may take long."""
    if not is_long(document):
        return compact_bytes(document)
    written = bytearray()
    try:
        yield from _write(document, written, _parts)
    except UnicodeEncodeError:
        written.clear()
        yield from _write(document, written, _ascii_parts)
    return bytes(written)


def strictly_compact_in_steps(document: Any) -> Steps[bytes]:
    """The same. ValueError: also if UTF-8 cannot say it."""
    written = bytearray()
    yield from _write(document, written, _parts)
    return bytes(written)


def _write(document: Any, written: bytearray, write: Callable[[Any, int], Iterable[str]]) -> Steps[None]:
    if type(document) is LongList:
        yield from _write_members(document, written, write)
    elif type(document) is LongDict:
        yield from _write_members(document.items(), written, write)
    elif is_long(document):
        written += b'"'
        for start in range(0, len(document), _CHARACTERS):
            text = "".join(write(document[start : start + _CHARACTERS], 0))
            written += text[1:-1].encode()
            yield None
        written += b'"'
    else:
        written += "".join(write(document, 0)).encode()


def _write_members(
    members: Iterable[Any], written: bytearray, write: Callable[[Any, int], Iterable[str]]
) -> Steps[None]:
    """Of a list, or the names and values of an object."""
    named = type(members) is not LongList
    written += b"{" if named else b"["
    rest = iter(members)
    comma = b""
    while some := list(islice(rest, _TOGETHER)):
        if not any(is_long(part) for each in some for part in (each if named else (each,))):
            text = "".join(write(dict(some) if named else some, 0))
            written += comma + text[1:-1].encode()
            comma = b","
        else:
            for each in some:
                written += comma
                comma = b","
                if named:
                    yield from _write(each[0], written, write)
                    written += b":"
                yield from _write(each[1] if named else each, written, write)
        yield None
    written += b"}" if named else b"]"
