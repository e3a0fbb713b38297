"""Kafka's DumpLogSegments, asked whether it accepts files."""

from __future__ import annotations

import re
from pathlib import Path

from compat.harness.tools import KafkaTools

# What it says when something does not fit.
COMPLAINTS = re.compile(
    r"mismatch|Mismatch|corrupt|Corrupt|invalid bytes|not valid|Exception|non-consecutive", re.ASCII
)


def accepted(tools: KafkaTools, files: list[Path], *options: str) -> str:
    """What it says about the files, none of which it complains about."""
    assert files
    result = tools.run("kafka-dump-log", "--files", ",".join(map(str, files)), *options, timeout=120)
    assert result.exit_code == 0, result
    said = str(result.stdout)
    assert not COMPLAINTS.search(said), COMPLAINTS.findall(said)
    assert not COMPLAINTS.search(str(result.stderr)), result.stderr
    return said


def dumped_records(tools: KafkaTools, segments: list[Path]) -> int:
    """How many records it finds in valid batches, markers not counted."""
    said = accepted(tools, segments, "--deep-iteration")
    assert said.count("isvalid: true") == len(re.findall(r"^baseOffset:", said, re.MULTILINE))
    return sum(
        int(count)
        for count, control in re.findall(
            r"^baseOffset:.* count: (\d+) .*isControl: (\w+)", said, re.MULTILINE
        )
        if control == "false"
    )
