"""W3C trace context, as the standard has it."""

from __future__ import annotations

import pytest

from kbroker.observability.traces.trace_context import of_headers, parsed

TRACE, PARENT = b"0af7651916cd43dd8448eb211c80319c", b"b7ad6b7169203331"
GOOD = b"00-" + TRACE + b"-" + PARENT + b"-01"


@pytest.mark.parametrize(
    ("value", "sampled"),
    [
        (GOOD, True),
        (GOOD[:-2] + b"00", False),
        (GOOD[:-2] + b"03", True),
        (b"01" + GOOD[2:], True),
        (b"cc" + GOOD[2:] + b"-what-comes-later", True),
    ],
)
def test_a_good_one(value: bytes, sampled: bool) -> None:
    context = parsed(value)
    assert context is not None
    assert (context.trace_id.hex().encode(), context.parent_id.hex().encode()) == (TRACE, PARENT)
    assert context.sampled is sampled


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"nonsense",
        GOOD.upper(),
        b"ff" + GOOD[2:],
        GOOD + b"-more",
        GOOD + b"\n",
        GOOD[:-1],
        b"00-" + b"0" * 32 + b"-" + PARENT + b"-01",
        b"00-" + TRACE + b"-" + b"0" * 16 + b"-01",
        b"01" + GOOD[2:] + b".",
        "0٠".encode() + GOOD[2:],
    ],
)
def test_what_is_none_counts_as_missing(value: bytes) -> None:
    assert parsed(value) is None


def test_the_last_header_counts() -> None:
    other = GOOD.replace(b"0af7", b"1111")
    context = of_headers((("traceparent", GOOD), ("Traceparent", b""), ("traceparent", other), ("x", None)))
    assert context is not None
    assert context.trace_id.hex().startswith("1111")
    assert of_headers((("traceparent", None),)) is None
