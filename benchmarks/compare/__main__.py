"""`python -m benchmarks.compare`: kbroker and Apache Kafka 4.3.1 on this machine, in turns, in one run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.compare import group_loads, report, security_rows, transaction_rows
from benchmarks.compare.brokers import BenchKafka, BenchKbroker, Broker, Usage, compile_kbroker
from benchmarks.compare.measures import Numbers, Row, remove_topics, warm_up
from benchmarks.compare.rows import ROWS
from benchmarks.compare.saved import Saved
from compat.harness import jars


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each load runs on each broker")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the loads (0.01: does it run at all)"
    )
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="rows whose name contains this (or that, if repeated)"
    )
    parser.add_argument(
        "--against", metavar="DIR", type=Path, help="a checkout of another kbroker, in place of Apache Kafka"
    )
    parser.add_argument(
        "--save",
        metavar="DIR",
        type=Path,
        help="write compare.json and compare.svg there; with --only, other rows that are there stay",
    )
    parser.add_argument("--resume", action="store_true", help="measure only what compare.json there lacks")
    given = parser.parse_args()
    if given.resume and given.save is None:
        parser.error("--resume needs --save DIR, where an earlier run left what it measured")
    rows = [row for row in ROWS if not given.only or any(text in row.name for text in given.only)]
    if not rows:
        parser.error(f"no such row; there are: {', '.join(row.name for row in ROWS)}")
    jars.classpath("kafka")  # downloaded before anything is timed
    compile_kbroker()
    if given.against is not None:
        compile_kbroker(given.against)
    keeps = given.save if given.resume or given.only else None
    saved = Saved.of(keeps, given.rounds, given.scale)
    samples: report.Samples = dict(saved.samples) if given.resume else {}
    rows = [row for row in rows if row.name not in samples]
    shared = any(not row.own_broker for row in rows)
    with _brokers(given.scale, given.against, warm=shared) as brokers, _progress() as progress:
        task = progress.add_task("", total=len(rows) * given.rounds * len(brokers))
        for row in rows:
            samples[row.name] = {}
            for name, numbers in _measured(row, brokers, given.rounds, given.scale):
                samples[row.name].setdefault(name, []).append(numbers)
                progress.update(task, advance=name != report.LIMIT, description=f"{row.name}: {name}")
            progress.console.print(_said(row.name, samples[row.name]), markup=False, highlight=False)
            if given.save is not None:
                saved.add(row.name, samples[row.name])
                saved.write(given.save)
    print("\n" + report.table(samples))
    return 0


@contextmanager
def _brokers(scale: float, against: Path | None, *, warm: bool) -> Iterator[list[Broker]]:
    with ExitStack() as stack:
        peer = BenchKafka() if against is None else BenchKbroker(against)
        brokers: list[Broker] = [BenchKbroker(), peer]
        for broker in brokers:
            stack.enter_context(broker)
            if warm:
                group_loads.wait_for_coordinator(broker)
                transaction_rows.wait_for_coordinator(broker)
                warm_up(broker, scale)
        stack.callback(security_rows.stop_brokers)
        yield brokers


def _progress() -> Progress:
    """On standard error, and only where somebody looks; what it prints above the bar goes there as well."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _measured(row: Row, brokers: list[Broker], rounds: int, scale: float) -> Iterator[tuple[str, Numbers]]:
    """A B A B …: noise of the machine hits both."""
    for _ in range(rounds):
        for broker in brokers:
            pid, before = broker.pid, Usage.of(broker.pid)
            numbers = row.run(broker, scale)
            after = Usage.of(broker.pid)
            restarted = broker.pid != pid
            numbers[report.CPU] = after.cpu_seconds - (0 if restarted else before.cpu_seconds)
            numbers[report.ANON] = after.rss_anon_bytes / 2**20
            numbers[report.FILE] = after.rss_file_bytes / 2**20
            remove_topics(broker)
            yield broker.name, numbers
        if row.limit is not None:
            yield report.LIMIT, row.limit(scale)


def _said(name: str, by_broker: dict[str, list[Numbers]]) -> str:
    return "\n".join(
        [
            name,
            *(
                f"  {line.unit}: {line.kbroker:.4g} against {line.kafka:.4g}, "
                f"{line.ratio:.2f}×{'' if line.better else '  WORSE'}"
                for line in report.lines({name: by_broker})
            ),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
