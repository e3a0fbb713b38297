"""Records that take long are the records that they would be if they took no time."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from kbroker.http.json_documents import LongDict, parsed
from kbroker.http.json_records import BadRecord, long_record_of, record_of
from kbroker.operations.publishing import NewRecord
from kbroker.requests.long_requests import Steps

NOW_MS = 1_700_000_000_000
LONG = 100_000


def taken(steps: Steps[Any]) -> tuple[Any, int]:
    """What they return, and how many they are."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def long_record(given: dict[str, Any]) -> tuple[NewRecord, int]:
    document, _ = taken(parsed(json.dumps(given, ensure_ascii=False).encode()))
    assert type(document) is LongDict
    found, steps = taken(long_record_of(document, NOW_MS))
    assert isinstance(found, NewRecord)
    return found, steps


RECORDS: dict[str, dict[str, Any]] = {
    "a list": {"value": [{"a": [1, 2.5, None]}, "é"] * 5000},
    "an object": {"value": {f"{number}": [number] for number in range(10_000)}},
    "nested ones": {"keyJson": {"a": {"b": ["x" * LONG, {}, {"c": ["€" * LONG, [1] * 9000]}]}}, "value": 1},
    "a long name": {"value": {"n" * LONG: 1}},
    "halves of surrogate pairs": {"value": ["\ud83d"] * 9000},
    "text": {"key": "k" * LONG, "valueText": 'é€😀"\\' * LONG},
    "base64": {"keyBase64": b64encode(b"\xff" * LONG).decode(), "valueBase64": b64encode(b"a" * 7).decode()},
    "headers": {
        "value": None,
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "valueBase64": "/w=="}] * 999,
    },
    "headers in an object": {"value": None, "headers": {f"{number}": "text" for number in range(2000)}},
    "all": {
        "key": "k" * LONG,
        "value": [1] * LONG,
        "headers": {"a": "b" * LONG},
        "timestamp": 5,
        "partition": 3,
    },
}


@pytest.mark.parametrize("case", RECORDS)
def test_a_long_record_is_what_it_says(case: str) -> None:
    given = RECORDS[case]
    if case == "halves of surrogate pairs":
        document, _ = taken(parsed(json.dumps(given).encode()))
        found, steps = taken(long_record_of(document, NOW_MS))
    else:
        found, steps = long_record(given)
    assert found == record_of(given, NOW_MS)
    assert steps >= 2


@pytest.mark.parametrize("size", [49_151, 49_152, 49_153, 100_000, 147_456])
def test_long_base64_is_what_it_is_in_one_piece(size: int) -> None:
    given = {"valueBase64": b64encode(bytes(range(256)) * (size // 256) + b"x" * (size % 256)).decode()}
    assert long_record(given)[0] == record_of(given, NOW_MS)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"valueText": [1] * LONG}, "valueText: text is expected, not a list"),
        ({"valueBase64": "AA==" * LONG}, "valueBase64: this is no base64"),
        ({"valueBase64": "A" * (LONG + 1)}, "valueBase64: this is no base64"),
        ({"valueBase64": "ä" * LONG}, "valueBase64: this is no base64"),
        ({"value": [1] * LONG, "key": 5}, "key: text is expected"),
        ({"value": [1] * LONG, "valueText": "a"}, "valueText: a record has one value"),
        ({"value": ["x" * 10] * LONG + [float("nan")]}, "value: JSON has no NaN"),
        ({"value": 1, "headers": "h" * LONG}, "headers: a list of headers is expected"),
        ({"value": 1, "headers": [{"key": "a", "value": "b"}] * 999 + [{}]}, r"headers\[999\]: a header has"),
        (
            {"value": 1, "headers": [{"key": "a", "value": "b"}] * 999 + [{"key": "a", "value": 1}]},
            r"headers\[999\]\.value: text",
        ),
        (
            {"value": 1, "headers": [{"key": "a", "value": "b"}] * 10_001},
            "headers: a record may have 10000 headers",
        ),
    ],
)
def test_the_place_of_a_mistake_is_told(given: dict[str, Any], place: str) -> None:
    with pytest.raises(BadRecord, match=f"^{place}"):
        long_record(given)
