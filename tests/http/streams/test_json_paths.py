"""Conditions on JSON documents, as RFC 9535 has them, as far as we have them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.http.streams.json_paths import LONGEST, BadPath, parsed

DOCUMENT = {
    "a": 1,
    "b": {"c": ["x", {"d": None}], "total amount": 12.5, "'": 1, "ü": True},
    "": {"": 0},
    "true": False,
    "list": [1, 2, 3],
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$", True),
        ("$.a", True),
        ("$.z", False),
        ("$['a']", True),
        ('$["a"]', True),
        ("$ .a", True),
        ("$ [ 'a' ] ", True),
        ("$.b.c", True),
        ("$.b.c[0]", True),
        ("$.b.c[-1].d", True),  # null is there
        ("$.b.c[2]", False),
        ("$.b.c[-3]", False),
        ("$.b.c.d", False),
        ("$.a.b", False),
        ("$.list[0]", True),
        ("$.b[0]", False),
        ("$.b['total amount']", True),
        ("$.b['\\'']", True),
        ('$.b["\'"]', True),
        ("$.b.ü", True),
        ("$.b['\\u00fc']", True),
        ("$['']['']", True),
        ("$.true", True),
    ],
)
def test_a_path_leads_to_a_node_or_nowhere(text: str, holds: bool) -> None:
    assert parsed(text).holds(DOCUMENT) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$.a == 1", True),
        ("$.a==1.0", True),
        ("$.a == 1e0", True),
        ("$.a == true", False),
        ("$.a == '1'", False),
        ("$.a != 1", False),
        ("$.a != 'x'", True),
        ("$.a < 2", True),
        ("$.a <= 1", True),
        ("$.a > 0.5", True),
        ("$.a >= 1", True),
        ("$.a >= 2", False),
        ("$.a < '2'", False),
        ("$.b.c[0] == 'x'", True),
        ('$.b.c[0] == "x"', True),
        ("$.b.c[0] < 'y'", True),
        ("$.b.c[0] >= 'x'", True),
        ("$.b.c[0] > 'x'", False),
        ("$.b.c[1].d == null", True),
        ("$.b.c[1].d <= null", True),
        ("$.b.c[1].d < null", False),
        ("$.b.ü == true", True),
        ("$.b.ü != false", True),
        ("$.b.ü == 1", False),
        ("$.b.ü >= true", True),
        ("$.b.ü > false", False),
        ("$.true == false", True),
        ("$[''][''] == false", False),
        ("$.b == 'x'", False),
        ("$.b != 'x'", True),
        ("$.list == 1", False),
        # nothing equals no literal, and has no order
        ("$.z == null", False),
        ("$.z != null", True),
        ("$.z != 1", True),
        ("$.z < 1", False),
        ("$.z >= 1", False),
        ("$.b['total amount'] > 12", True),
        ("$.b['total amount'] == 125e-1", True),
        ("$.a == -1", False),
    ],
)
def test_a_comparison_is_one_of_the_rfc(text: str, holds: bool) -> None:
    assert parsed(text).holds(DOCUMENT) is holds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "begins with \\$, at character 1"),
        ("a", "begins with \\$"),
        ("@.a", "begins with \\$"),
        ("$.", "name of a member is expected.*at character 3"),
        ("$.1a", "name of a member is expected"),
        ("$.a-b", "should end here, at character 4"),
        ("$..a", "name of a member is expected"),
        ("$.*", "name of a member is expected"),
        ("$[*]", "an index or a name in quotes"),
        ("$[]", "an index or a name in quotes"),
        ("$[01]", "] is expected"),
        ("$[-0]", "an index or a name in quotes"),
        ("$[1", "] is expected"),
        ("$[1:2]", "] is expected"),
        ("$['a','b']", "] is expected"),
        ("$['a]", "an index or a name in quotes"),
        ("$['\\x']", "an escape that JSON does not know"),
        ("$[?@.a]", "an index or a name in quotes"),
        ("$[99999999999999999]", "at most"),
        ("$[99999999999999999999]", "at most"),
        ("$.a =", "should end here"),
        ("$.a = 1", "should end here"),
        ("$.a ==", "a number, a string in quotes"),
        ("$.a == x", "a number, a string in quotes"),
        ("$.a == NaN", "a number, a string in quotes"),
        ("$.a == Infinity", "a number, a string in quotes"),
        ("$.a == [1]", "a literal is a number"),
        ("$.a == {}", "a literal is a number"),
        ("$.a == $.b", "a number, a string in quotes"),
        ("$.a == 1 && $.b", "should end here"),
        ("$.a == 1 2", "should end here"),
        ("$" + ".a" * LONGEST, "characters"),
    ],
)
def test_what_is_no_condition_is_told_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(BadPath, match=problem):
        parsed(text)


@given(st.text(max_size=60))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    for each in (text, f"${text}", f"$.a == {text}", f"$['{text}']"):
        with suppress(BadPath):
            parsed(each).holds(DOCUMENT)


NAMES = st.text(min_size=1, max_size=10)
STEPS = st.lists(NAMES | st.integers(0, 3), min_size=1, max_size=6)


@given(STEPS, st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text())
def test_any_node_is_found_by_its_path(steps: list[str | int], value: Any) -> None:
    document = value
    for step in reversed(steps):
        document = {step: document} if isinstance(step, str) else [None] * step + [document]
    path = "$" + "".join(f"[{json.dumps(step)}]" for step in steps)
    assert parsed(path).holds(document)
    if not isinstance(value, float) or abs(value) != float("inf"):
        assert parsed(f"{path} == {json.dumps(value)}").holds(document)
        assert not parsed(f"{path} != {json.dumps(value)}").holds(document)


def test_the_longest_condition_costs_little() -> None:
    deep = "$" + "[0]" * 300
    document: Any = 1
    for _ in range(300):
        document = [document]
    assert parsed(deep).holds(document)
