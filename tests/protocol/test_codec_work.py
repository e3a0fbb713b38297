"""What the design asks of the compiled codec: a tenth of construct's work (its time: benchmarks/codec.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks.codec import CASES
from kbroker.protocol import reference
from kbroker.protocol.codec import decode, encode_bytes


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} v{case.version}")
def test_decoding_makes_at_most_a_tenth_of_constructs_calls(case):
    cls, version = type(case.message), case.version
    data = encode_bytes(case.message, version)
    decode(cls, version, memoryview(data))  # generates the decoder
    parse = reference.struct_for(cls, version).parse
    assert calls(lambda: decode(cls, version, memoryview(data))) * 10 <= calls(lambda: parse(data))


def calls(run: Callable[[], Any]) -> int:
    """How many functions a run calls, in Python and in C: what it costs, whatever else the machine does."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return counted


def test_the_codec_never_loads_construct():
    program = (
        "import sys, kbroker.protocol.codec as codec\n"
        "from kbroker.protocol.headers import RequestHeader\n"
        "from kbroker.protocol.messages.metadata import MetadataRequest\n"
        "codec.decode(MetadataRequest, 12, memoryview(codec.encode_bytes(MetadataRequest(), 12)))\n"
        "sys.exit('construct' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
