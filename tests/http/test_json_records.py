from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.http.json_records import BadRecord, Encoding, json_of, parsed, record_of, value_of
from kbroker.protocol.records import Record

NOW_MS = 1_700_000_000_000
ENCODINGS = st.sampled_from(Encoding)

header_keys = st.one_of(
    st.text(max_size=8).filter(lambda text: text.isprintable()),
    st.binary(max_size=8).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
)
contents = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.text(max_size=20).map(str.encode),
    st.sampled_from(
        [b"null", b"NaN", b"1e999", b'"\\ud800"', b"[" * 500, b" {} ", b"\xef\xbb\xbf{}", b"1.10"]
    ),
)
records = st.builds(
    Record,
    st.integers(0, 2**63 - 1),
    contents,
    contents,
    st.lists(st.tuples(header_keys, contents), max_size=3).map(tuple),
    st.just(0),
    st.just(0),
)
documents = st.recursive(
    st.one_of(
        st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)


def again(record: Record, key: Encoding, value: Encoding) -> Record:
    """The record after it went to a reader as JSON, and came back."""
    shown = json_of(record, key, value)
    shown = json.loads(json.dumps(shown, ensure_ascii=False, allow_nan=False).encode())
    assert shown.pop("offset") == record.offset
    return record_of(shown, NOW_MS).record


@given(
    records,
    st.sampled_from([Encoding.TEXT, Encoding.BASE64]),
    st.sampled_from([Encoding.TEXT, Encoding.BASE64]),
)
def test_a_record_that_was_read_as_text_or_base64_is_written_again_byte_for_byte(
    record: Record, key: Encoding, value: Encoding
) -> None:
    assert again(record, key, value) == record


@given(records, ENCODINGS, ENCODINGS)
def test_a_record_that_was_read_as_json_is_written_again_as_the_same_document(
    record: Record, key: Encoding, value: Encoding
) -> None:
    written = again(record, key, value)
    assert written.headers == record.headers
    assert written.timestamp == record.timestamp
    for before, after in ((record.key, written.key), (record.value, written.value)):
        if before != after:
            assert before is not None
            assert after is not None
            assert json.loads(before) == json.loads(after)


@given(documents)
def test_a_value_is_stored_as_the_json_that_it_is(document: Any) -> None:
    stored = record_of({"value": document}, NOW_MS).record.value
    assert stored is not None
    assert json.loads(stored) == document
    assert json_of(Record(NOW_MS, None, stored))["value"] == document


def test_a_value_is_compact_json_and_a_key_is_text() -> None:
    given = {"key": "user-1", "value": {"amount": 3, "ort": "Köln"}, "partition": 2}
    record, partition = record_of(given, NOW_MS)
    assert record == Record(NOW_MS, b"user-1", '{"amount":3,"ort":"Köln"}'.encode())
    assert partition == 2


def test_the_name_of_a_field_says_how_it_is_encoded() -> None:
    assert record_of({"keyJson": "a", "valueText": "b"}, NOW_MS).record == Record(NOW_MS, b'"a"', b"b")
    assert record_of({"keyBase64": "AAE=", "valueBase64": ""}, NOW_MS).record == Record(NOW_MS, b"\0\1", b"")
    assert record_of({"key": None, "value": None}, NOW_MS).record == Record(NOW_MS, None, None)


def test_headers_are_a_list_or_an_object_of_texts() -> None:
    listed = [{"key": "a", "value": "1"}, {"key": "a", "valueBase64": "/w=="}, {"key": "b", "value": None}]
    record = record_of({"value": 1, "headers": listed}, NOW_MS).record
    assert record.headers == (("a", b"1"), ("a", b"\xff"), ("b", None))
    assert json_of(record)["headers"] == listed
    record = record_of({"value": 1, "headers": {"a": "1", "b": None}}, NOW_MS).record
    assert record.headers == (("a", b"1"), ("b", None))


@pytest.mark.parametrize(
    ("data", "key", "value"),
    [
        (b'{"a":1}', {"keyJson": {"a": 1}}, {"value": {"a": 1}}),
        (b"plain", {"key": "plain"}, {"valueText": "plain"}),
        (b"null", {"key": "null"}, {"valueText": "null"}),
        (b"NaN", {"key": "NaN"}, {"valueText": "NaN"}),
        (b"1e999", {"key": "1e999"}, {"valueText": "1e999"}),
        (b"\xff", {"keyBase64": "/w=="}, {"valueBase64": "/w=="}),
        (None, {"key": None}, {"value": None}),
    ],
)
def test_what_is_not_in_the_encoding_that_a_reader_wants_comes_in_the_next_one(
    data: bytes | None, key: dict[str, Any], value: dict[str, Any]
) -> None:
    shown = json_of(Record(NOW_MS, data, data), Encoding.JSON, Encoding.JSON)
    assert shown == {"offset": 0, "timestamp": NOW_MS, **key, **value, "headers": []}


def test_a_document_that_is_nested_too_deeply_to_be_written_again_counts_as_text() -> None:
    assert parsed("[" * 99 + "]" * 99) is not None
    assert parsed("[" * 101 + "]" * 101) is None
    assert parsed("[" * 100_000 + "]" * 100_000) is None
    assert parsed("[" + "[]," * 1000 + "1]") is not None


@pytest.mark.parametrize(
    ("mistake", "place", "problem"),
    [
        ({"key": "a"}, "", "a value is expected"),
        (7, "", "a record is an object with a value, not a number"),
        ({"vlaue": 1}, "vlaue", "a record has no such field, but headers, key,"),
        ({"value": 1, "valueText": "1"}, "valueText", "a record has one value"),
        ({"key": "a", "keyJson": 1, "value": 1}, "keyJson", "a record has one key"),
        ({"key": 5, "value": 1}, "key", "text is expected, not a number"),
        ({"valueText": "\ud800"}, "valueText", "surrogate pair"),
        ({"valueBase64": "AA"}, "valueBase64", "this is no base64"),
        ({"valueBase64": "ä==="}, "valueBase64", "this is no base64"),
        ({"value": float("nan")}, "value", "JSON has no NaN"),
        ({"value": 1, "timestamp": -1}, "timestamp", "milliseconds since 1970 are expected"),
        ({"value": 1, "timestamp": True}, "timestamp", "milliseconds since 1970 are expected"),
        ({"value": 1, "partition": "0"}, "partition", "the number of a partition"),
        ({"value": 1, "headers": 1}, "headers", "a list of headers is expected"),
        ({"value": 1, "headers": [{"key": "a"}]}, "headers[0]", "a header has"),
        (
            {"value": 1, "headers": [{"key": 1, "value": "a"}]},
            "headers[0].key",
            "text is expected",
        ),
        (
            {"value": 1, "headers": [{"key": "a", "value": 1}]},
            "headers[0].value",
            "text is expected",
        ),
        (
            {"value": 1, "headers": [{"key": "a", "keyBase64": "AA=="}]},
            "headers[0]",
            "a header has",
        ),
        (
            {"value": 1, "headers": [{"value": "a", "valueBase64": ""}]},
            "headers[0]",
            "a header has",
        ),
        ({"value": 1, "headers": {"a": 1}}, "headers.a", "text is expected"),
    ],
)
def test_a_mistake_is_told_with_its_place(mistake: Any, place: str, problem: str) -> None:
    with pytest.raises(BadRecord) as told:
        record_of(mistake, NOW_MS)
    assert told.value.place == place
    assert problem in told.value.problem


def test_a_value_alone_is_base64() -> None:
    assert value_of("AAE=", NOW_MS).record.value == b"\0\1"
    with pytest.raises(BadRecord):
        value_of(7, NOW_MS)
