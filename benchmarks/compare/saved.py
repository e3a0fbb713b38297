"""compare.json and its chart: what was measured, and when; rows of a later run say so themselves."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.compare import report
from benchmarks.compare.measures import Numbers
from benchmarks.compare.rows import ROWS

_ROOT = Path(__file__).parents[2]
_NAME = "compare.json"
Facts = dict[str, str]


class Saved:
    def __init__(
        self,
        facts: Facts,
        before: Facts | None = None,
        samples: report.Samples | None = None,
        later: dict[str, Facts] | None = None,
    ) -> None:
        """``facts`` of this run; of an earlier one of the same size ``before`` and what it left."""
        self._facts = facts
        self._before = before
        self.samples = samples or {}
        self._later = later or {}

    @classmethod
    def of(cls, directory: Path | None, rounds: int, scale: float) -> Saved:
        """What is there, if anything."""
        facts = facts_of_a_run(rounds, scale)
        path = None if directory is None else directory / _NAME
        if path is None or not path.exists():
            return cls(facts)
        found = json.loads(path.read_text())
        before = found["facts"]
        if any(before[name] != facts[name] for name in ("rounds", "scale")):
            sys.exit(f"{path} was measured with other --rounds or --scale")
        return cls(facts, before, found["samples"], found.get("later", {}))

    def add(self, row: str, by_broker: dict[str, list[Numbers]]) -> None:
        self.samples[row] = by_broker
        self._later.pop(row, None)
        now = {name: self._facts[name] for name in ("date", "commit")}
        if self._before is not None and not now.items() <= self._before.items():
            self._later[row] = now

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        names = [row.name for row in ROWS if row.name in self.samples]
        samples = {name: self.samples[name] for name in names}
        later = {name: self._later[name] for name in names if name in self._later}
        content = {"facts": self._before or self._facts, "later": later, "samples": samples}
        (directory / _NAME).write_text(json.dumps(content, indent=1) + "\n")
        (directory / "compare.svg").write_text(report.chart(samples))


def facts_of_a_run(rounds: int, scale: float) -> Facts:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
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
