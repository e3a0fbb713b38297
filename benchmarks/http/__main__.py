"""`python -m benchmarks.http`: what HTTP costs the broker, and what Kafka clients beside it feel of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.compare.brokers import compile_kbroker
from benchmarks.compare.saved import facts_of_a_run
from benchmarks.http import report
from benchmarks.http.brokers import HttpBroker
from benchmarks.http.rows import Row, rows

NAME = "http.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each load runs")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the loads (0.01: does it run at all)"
    )
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="rows whose name contains this (or that, if repeated)"
    )
    parser.add_argument(
        "--against", metavar="DIR", type=Path, help="a checkout of another kbroker, measured in turns"
    )
    parser.add_argument(
        "--before", metavar="DIR", type=Path, help="a checkout of kbroker from before it had HTTP, to start"
    )
    parser.add_argument("--save", metavar="DIR", type=Path, help=f"write {NAME} there; other rows there stay")
    given = parser.parse_args()
    chosen = [row for row in rows(given.before) if not given.only or any(t in row.name for t in given.only)]
    if not chosen:
        parser.error(f"no such row; there are: {', '.join(row.name for row in rows(given.before))}")
    checkouts = [None] if given.against is None else [None, given.against]
    for checkout in (*checkouts, given.before):
        compile_kbroker(*([] if checkout is None else [checkout]))
    measured: report.Saved = {}
    with _brokers(checkouts) as brokers:
        for row in chosen:
            measured |= _measured(row, brokers, given.rounds, given.scale)
            print(report.table(row.kind, measured).splitlines()[-1], flush=True)
    print("\n" + report.tables(measured))
    if given.save is not None:
        _save(given.save / NAME, measured, given.rounds, given.scale)
    return 0


@contextmanager
def _brokers(checkouts: list[Path | None]) -> Iterator[list[HttpBroker]]:
    with ExitStack() as stack:
        yield [stack.enter_context(HttpBroker(checkout)) for checkout in checkouts]


def _measured(row: Row, brokers: list[HttpBroker], rounds: int, scale: float) -> report.Saved:
    found: report.Saved = {}
    for _ in range(rounds):
        for broker in brokers:
            name = row.name if broker is brokers[0] else f"{row.name}, {broker.name}"
            load, _, _ = os.getloadavg()
            entry = found.setdefault(name, {"kind": row.kind, "load": [], "samples": []})
            entry["load"].append(round(load, 1))
            entry["samples"] += row.run(broker, scale)
    return found


def _save(path: Path, measured: report.Saved, rounds: int, scale: float) -> None:
    facts = facts_of_a_run(rounds, scale)
    taken = {name: facts.pop(name) for name in ("date", "commit")}
    found: report.Saved = json.loads(path.read_text())["rows"] if path.exists() else {}
    found |= {name: {**row, **taken} for name, row in measured.items()}
    order = [row.name for row in rows(Path())]
    kept = {name: found[name] for name in order if name in found}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"facts": facts, "rows": kept}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
