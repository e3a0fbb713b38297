"""`python -m benchmarks.compare`: kbroker and Apache Kafka 4.3.1 on this machine, in turns, in one run."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.compare import report
from benchmarks.compare.brokers import Broker
from benchmarks.compare.rows import KINDS, ROWS, Row
from compat.harness import jars

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each load runs on each broker")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the loads (0.01: does it run at all)"
    )
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="rows whose name contains this (or that, if repeated)"
    )
    parser.add_argument("--save", metavar="DIR", type=Path, help="write compare.json and compare.svg there")
    given = parser.parse_args()
    rows = [row for row in ROWS if not given.only or any(text in row.name for text in given.only)]
    if not rows:
        parser.error(f"no such row; there are: {', '.join(row.name for row in ROWS)}")
    jars.classpath("kafka")  # downloaded before anything is timed
    samples: report.Samples = {}
    with _brokers() as brokers:
        for row in rows:
            samples[row.name] = _measure(row, brokers, given.rounds, given.scale)
            for line in report.lines({row.name: samples[row.name]}):
                print(
                    f"  {line.number}: {line.kbroker:.4g} against {line.kafka:.4g} {line.unit}, "
                    f"{line.ratio:.2f}×{'' if line.better else '  WORSE'}",
                    flush=True,
                )
    made = report.lines(samples)
    print("\n" + report.table(made))
    if given.save is not None:
        given.save.mkdir(parents=True, exist_ok=True)
        report.save_json(samples, _facts(given.rounds, given.scale), given.save / "compare.json")
        (given.save / "compare.svg").write_text(report.chart(made))
    return 0


@contextmanager
def _brokers() -> Iterator[list[Broker]]:
    with ExitStack() as stack:
        yield [stack.enter_context(kind()) for kind in KINDS]


def _measure(row: Row, brokers: list[Broker], rounds: int, scale: float) -> dict[str, list[dict[str, float]]]:
    """A B A B …: noise of the machine hits both."""
    measured: dict[str, list[dict[str, float]]] = {broker.name: [] for broker in brokers}
    for number in range(rounds):
        for broker in brokers:
            _progress(f"{row.name}: round {number + 1} of {rounds}, {broker.name}")
            measured[broker.name].append(row.run(broker, scale))
    _progress("")
    print(row.name, flush=True)
    return measured


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _facts(rounds: int, scale: float) -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "commit": commit,
        "rounds": str(rounds),
        "scale": str(scale),
        "date": time.strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    sys.exit(main())
