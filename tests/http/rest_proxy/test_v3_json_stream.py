from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.http.rest_proxy.v3.json_stream import JsonStream, Malformed, NotJson, TooLong, Unparsed

DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('{}[]"\\/é \n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('{}"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text('a{}"\\', max_size=3), DOCUMENTS, max_size=3), max_size=6)


@given(OBJECTS, st.sampled_from(["", " ", "\r\n"]), st.booleans(), st.lists(st.integers(0, 200), max_size=8))
def test_objects_are_found_however_the_body_is_cut(
    objects: list[Any], between: str, ascii_only: bool, cuts: list[int]
) -> None:
    body = between.join(json.dumps(each, ensure_ascii=ascii_only) for each in objects).encode()
    ends = sorted({min(cut, len(body)) for cut in cuts} | {len(body)})
    stream = JsonStream(10_000)
    found: list[Any] = []
    start = 0
    for end in ends:
        found += stream.feed(body[start:end])
        start = end
    stream.end()
    assert found == objects
    assert stream.held == 0


def test_what_is_no_object_is_told_after_those_before_it() -> None:
    stream = JsonStream(100)
    assert stream.feed(b'{"a":1} [') == [{"a": 1}]
    with pytest.raises(NotJson):
        stream.feed(b"")


def test_an_object_that_does_not_end_is_told_at_the_end() -> None:
    stream = JsonStream(100)
    assert stream.feed(b'{"a":') == []
    with pytest.raises(NotJson):
        stream.end()


@given(st.lists(st.integers(1, 20), max_size=5))
def test_an_object_that_is_no_json_is_told_in_its_place(cuts: list[int]) -> None:
    body = b'{"a":1}{"b":tru,"c":"}"}{"d":4}'
    stream = JsonStream(100)
    found: list[Any] = []
    start = 0
    for end in [*sorted(set(cuts)), len(body)]:
        found += stream.feed(body[start:end])
        start = end
    assert (found[0], found[2]) == ({"a": 1}, {"d": 4})
    assert isinstance(found[1], Malformed)


def test_an_object_that_is_too_long_is_refused_whether_it_ends_or_not() -> None:
    with pytest.raises(TooLong):
        JsonStream(10).feed(b'{"a":"' + b"x" * 10)
    with pytest.raises(TooLong):
        JsonStream(10).feed(b'{"a":"' + b"x" * 10 + b'"}')
    stream = JsonStream(10)
    assert stream.feed(b'{"a":1}{"a":"' + b"x" * 10 + b'"}') == [{"a": 1}]
    with pytest.raises(TooLong):
        stream.feed(b"")


def test_a_long_object_in_many_parts_is_looked_at_once() -> None:
    """Looked at again with every part it would take minutes."""
    stream = JsonStream(1 << 24)
    assert stream.feed(b'{"a":"') == []
    for _ in range(4000):
        assert stream.feed(b"\\\\" * 500) == []
    (found,) = stream.feed(b'"}')
    assert isinstance(found, Unparsed), "which others do in turns"
    assert json.loads(found.text) == {"a": "\\" * 2_000_000}
