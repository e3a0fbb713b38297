"""What the design asks of the compiled codec: at most a tenth of construct's own time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.codec import CASES, measure


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} v{case.version}")
def test_decoding_takes_at_most_a_tenth_of_constructs_time(case):
    assert measure(case).ratio >= 10


def test_the_codec_never_loads_construct():
    program = (
        "import sys, kbroker.protocol.codec as codec\n"
        "from kbroker.protocol.headers import RequestHeader\n"
        "from kbroker.protocol.messages.metadata import MetadataRequest\n"
        "codec.decode(MetadataRequest, 12, memoryview(codec.encode_bytes(MetadataRequest(), 12)))\n"
        "sys.exit('construct' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
