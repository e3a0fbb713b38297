"""Whatever a document looks like, it is parsed as json parses it, and never for long without a pause."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.http.json_documents import parsed, size_when_parsed

WINDOW = 8 * 1024
MANY = 3 * WINDOW


def taken(body: bytes) -> tuple[Any, int]:
    """The document, and in how many steps."""
    steps = parsed(body)
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


texts = st.one_of(
    st.text(),
    st.sampled_from(['"', "\\", "],", "},{", "\n", "\u00e9", "\u20ac", "\U0001f600", "\ud83d", "\ude00"]),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(texts, inner, max_size=5)),
    max_leaves=20,
)


longs = st.one_of(
    st.lists(documents, min_size=1, max_size=5).map(lambda some: some * (MANY // len(json.dumps(some)))),
    texts.map(lambda text: (text or "x") * (MANY // max(len(text), 1))),
    documents.map(
        lambda inner: {f"{number}": inner for number in range(MANY // (len(json.dumps(inner)) + 6))}
    ),
)
long_documents = st.recursive(
    longs,
    lambda inner: st.one_of(
        st.tuples(documents, inner, documents).map(list),
        st.tuples(texts, inner, texts, documents).map(lambda few: {few[0]: few[1], few[2]: few[3]}),
    ),
    max_leaves=3,
)


@settings(max_examples=200, deadline=None)
@given(long_documents, st.booleans(), st.sampled_from([None, 1, (", ", ": "), (",", ":")]))
def test_what_is_parsed_is_what_json_parses(document: Any, ascii_only: bool, style: Any) -> None:
    options = {"indent": style} if isinstance(style, int) else {"separators": style}
    text = json.dumps(document, ensure_ascii=ascii_only, **options)
    body = text.encode(errors="replace")
    assert taken(body)[0] == json.loads(body)


BROKEN = {
    "nothing": b"",
    "space": b" " * MANY,
    "half a list": b"[" + b"1," * MANY,
    "no value": b"[" + b"1," * MANY + b"]",
    "no first value": b"[,1" + b",1" * MANY + b"]",
    "two commas": b"[" + b"1," * MANY + b",1]",
    "another end": b"[" + b"1," * MANY + b"1}",
    "no comma": b"[" + b"1," * MANY + b"1 2]",
    "something behind": b"[" + b"1," * MANY + b"1] x",
    "no name": b'{"a": [' + b"1," * MANY + b"1], 2: 3}",
    "no colon": b'{"a": [' + b"1," * MANY + b'1], "b" 3}',
    "half a text": b'"' + b"x" * MANY,
    "a wrong escape": b'"' + b"x" * MANY + b"\\x" + b"x" * MANY + b'"',
    "a wrong number of an escape": b'"' + b"x" * MANY + b"\\u12g4" + b"x" * MANY + b'"',
    "a control character": b'"' + b"x" * MANY + b"\n" + b"x" * MANY + b'"',
    "a word": b"[" + b"1," * MANY + b"nul]",
    "a long word": b"[" + b"n" * MANY + b"]",
    "no UTF-8": b'["' + b"x" * MANY + b'\xff"]',
    "half a character": b'["' + b"x" * MANY + b"\xe2\x82",
    "a long number": b"[" + b"1" * MANY + b"]",
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_json_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json.loads(BROKEN[case])
    with pytest.raises(ValueError, match=r"."):
        taken(BROKEN[case])


def test_the_place_of_a_mistake_is_told() -> None:
    with pytest.raises(ValueError, match=f"Expecting value: byte {1 + 6 * MANY}$"):
        taken('["€",'.encode() + '"€",'.encode() * (MANY - 1) + b"?")


@pytest.mark.parametrize("sign", [b"[", b'{"a":'])
def test_what_is_nested_without_an_end_is_refused(sign: bytes) -> None:
    with pytest.raises(RecursionError):
        taken(sign * MANY)


MB = 1_000_000
HOSTILE = {
    "empty lists": b"[" + b"[]," * (MB // 3) + b"0]",
    "empty objects": b"[" + b"{}," * (MB // 3) + b"0]",
    "small objects": b"[" + b'{"a":{"b":[1,2],"c":"},"}},' * (MB // 27) + b"0]",
    "numbers": b"[" + b"1," * (MB // 2) + b"0]",
    "members": b"{" + b'"":0,' * (MB // 5) + b'"":0}',
    "pretty members": b"{" + b'"a" : { } ,\n' * (MB // 12) + b'"":0}',
    "escapes": b'"' + b"\\n" * (MB // 2) + b'"',
    "pairs of surrogates": b'"' + b"\\ud83d\\ude00" * (MB // 12) + b'"',
    "halves of surrogates": b'"' + b"\\ud83d" * (MB // 6) + b'"',
    "a text": b'"' + b"x" * MB + b'"',
    "characters": b'"' + "€".encode() * (MB // 3) + b'"',
    "space": b" " * MB + b"0",
    "long ones in long ones": b"["
    + (b'{"a":[' * 90 + b"[]," * 4000 + b"0" + b"]}" * 90 + b",") * (MB // 12_900)
    + b"0]",
    "deep ones": b"[" + (b"[" * 150 + b"1," * 5000 + b"0" + b"]" * 150 + b",") * (MB // 10_300) + b"0]",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_step_sees_a_few_windows_and_none_too_often(case: str) -> None:
    body = HOSTILE[case]
    document, steps = taken(body)
    assert document == json.loads(body)
    windows = len(body) / WINDOW
    assert windows * 0.9 < steps < windows * 8


@pytest.mark.parametrize("case", HOSTILE)
def test_what_a_document_takes_is_foretold(case: str) -> None:
    body = HOSTILE[case]
    steps = size_when_parsed(body)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            foretold = end.value
            break
    tracemalloc.start()
    try:
        document = json.loads(body)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert document is not None
    assert held < foretold * 1.3
