"""Benchmarks are not tests: here each only has to run, at a tiny size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

TINY: dict[str, tuple[str, ...]] = {
    "benchmarks.codec": (),
    "benchmarks.records": (),
    # One row of a kind: every JVM costs a second.
    "benchmarks.compare": (
        *("--rounds", "1", "--scale", "0.002", "--only", "producer-perf 10 KiB, 64"),
        *("--only", "librdkafka producer", "--only", "latency at 1,000", "--only", "10,000"),
        *("--only", "10 members settle, consumer", "--only", "transactions: version 2, 1 producer, 1 "),
    ),
    "benchmarks.growth": ("--scale", "0.002"),
    "benchmarks.compaction": ("2",),
    "benchmarks.share_store": ("--scale", "0.01"),
    "benchmarks.storage": ("--scale", "0.002"),
    "benchmarks.local": ("--scale", "0.01"),
    "benchmarks.wire_proxy": ("--scale", "0.01"),
    "benchmarks.acls": ("--scale", "0.01"),
    "benchmarks.share_states": ("--scale", "0.01"),
    "benchmarks.grpc": ("--scale", "0.01"),
    "benchmarks.http": ("--rounds", "1", "--scale", "0.002"),
    "benchmarks.scrape": ("--scale", "0.01"),
}
# Brokers of their own, which take their time to start.
SECURED = (
    *("--rounds", "1", "--scale", "0.002"),
    *("--only", "security: TLS, handshakes", "--only", "security: SCRAM and ACLs, small"),
)
DRAWING = ("benchmarks.compare", "benchmarks.growth")
SAVING = (*DRAWING, "benchmarks.http")
# Used by others, not run by themselves.
PARTS = {"benchmarks.raw", "benchmarks.fetch_old", "benchmarks.bare_copy"}
# Two brokers and a Spark of their own: minutes even at a tiny size.
BY_HAND = {"benchmarks.spark"}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "arguments"), [*TINY.items(), ("benchmarks.compare", SECURED)])
def test_it_runs(module: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    save = ("--save", str(tmp_path)) if module in SAVING else ()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments, *save],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
    if save:
        assert list(tmp_path.glob("*.json"))
        assert list(tmp_path.glob("*.svg")) or module not in DRAWING


def test_none_is_forgotten() -> None:
    found = {f"benchmarks.{path.stem}" for path in HERE.glob("*.py")}
    found -= {"benchmarks.__init__", f"benchmarks.{Path(__file__).stem}"}
    found |= {f"benchmarks.{path.parent.name}" for path in HERE.glob("*/__main__.py")}
    assert found == TINY.keys() | PARTS | BY_HAND
