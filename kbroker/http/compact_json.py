"""JSON as it is sent and stored: without spaces, and without NaN and Infinity, which it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final


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
