"""Pipelines as text, for tests: a good one, and changes to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbroker.pipeline import reading
from kbroker.pipeline.errors import Problem, SpecError
from kbroker.pipeline.spec import Pipeline

GOOD = """\
name: orders
sources:
  orders:
    topics: orders
    decode: {format: json, schema: "id bigint, placed_at timestamp, amount double"}
    watermark: {column: placed_at, delay: 10 minutes}
steps:
  big:
    sql: SELECT * FROM orders WHERE amount > 100
sinks:
  out:
    from: big
    delta: ./out
"""


def load(directory: Path, text: str) -> Pipeline:
    file = directory / "pipeline.yml"
    file.write_text(text)
    return reading.load(file)


def problems(directory: Path, text: str) -> list[Problem]:
    """What is wrong with a file; it must be something."""
    with pytest.raises(SpecError) as caught:
        load(directory, text)
    return caught.value.problems


def has_run(directory: Path, sink: str = "out") -> None:
    """A checkpoint with one whole batch."""
    checkpoint = directory / "orders.state" / sink / "checkpoint"
    for part, content in (
        ("offsets", f"v1\n{{}}\n{json.dumps({'orders': {'0': 5}})}"),
        ("commits", "v1\n{}"),
    ):
        (checkpoint / part).mkdir(parents=True)
        (checkpoint / part / "0").write_text(content)
