"""A record with a long value is shown as one with a short value is, in turns."""

from __future__ import annotations

import json

import pytest

from kbroker.http.answers import encoded
from kbroker.http.json_records import Encoding, json_of
from kbroker.http.shown_records import shown
from kbroker.protocol.records import Record

LONG = 100_000
BEFORE = {"topic": "t", "partition": 3}
VALUES: dict[str, bytes] = {
    "a list": json.dumps([{"a": [1, 2.5, None]}, "é"] * 5000).encode(),
    "an object": json.dumps({f"{number}": [number] for number in range(10_000)}, indent=1).encode(),
    "a text in JSON": json.dumps("€" * LONG, ensure_ascii=False).encode(),
    "names that come twice": b'{"a":1,' + b'"b":2,"a":3,' * 9000 + b'"c":4}',
    "text": 'é€😀"\\\n'.encode() * LONG,
    "text of characters that do not end where pieces do": b"x" + "😀".encode() * LONG,
    "half a character": b"x" * LONG + b"\xe2\x82",
    "half a character in the middle": "€".encode() * LONG + b"\xe2\x82" + b"x" * LONG,
    "bytes": bytes(range(256)) * 1000,
    "bytes of continuations": b"\x80" * LONG,
    "a number that is none": b"[" + b"1," * LONG + b"NaN]",
    "a number beyond": b"[" + b"1," * LONG + b"1e999]",
    "deep enough": b"[" * 100 + b"1," * LONG + b"1" + b"]" * 100,
    "too deep": b"[" * 101 + b"1," * LONG + b"1" + b"]" * 101,
    "too deep in a short one": b"[" + b"1," * LONG + b"[" * 100 + b"]" * 100 + b"]",
    "far too deep": b"[" * LONG + b"]" * LONG,
    "half of a surrogate pair": b"[" + b'"\\ud83d",' * LONG + b"1]",
    "surrogate pairs": b"[" + b'"\\ud83d\\ude00",' * LONG + b"1]",
    "a byte order mark": b"\xef\xbb\xbf[" + b"1," * LONG + b"1]",
    "null": b" " * LONG + b"null",
    "space": b" " * LONG,
}


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("case", VALUES)
def test_a_long_value_is_shown_as_a_short_one(case: str, encoding: Encoding) -> None:
    record = Record(5, b"key", VALUES[case], (("h", b"\xff"),), 7)
    encodings = (Encoding.TEXT, encoding)
    steps = shown(record, encodings, BEFORE)
    assert not isinstance(steps, bytes)
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found = end.value
            break
        count += 1
    assert found == encoded({**BEFORE, **json_of(record, *encodings)})
    assert count >= 1
