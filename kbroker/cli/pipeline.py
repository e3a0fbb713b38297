"""`kbroker pipeline`: declared Spark jobs from topics to tables. Only actions that run Spark import it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.pipeline.spec import Pipeline

_DESCRIPTION = """\
Run data pipelines on Spark: topics to tables, declared in one YAML file (its options: kbroker docs pipeline).
Needs the extra: pip install 'kbroker[spark]'."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("pipeline", help="run data pipelines on Spark", description=_DESCRIPTION)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    run = _action(actions, "run", "run a pipeline until it is stopped, or is done", run_pipeline)
    run.add_argument("--once", action="store_true", help="process what is there now, then end")
    run.add_argument("--dry-run", action="store_true", help="show the plan and the schemas, write nothing")

    _action(actions, "check", "explain what is wrong with a file, without Spark", check)

    status = _action(
        actions, "status", "lag, last batch, rows per second, rejected and late rows", show_status
    )
    status.add_argument("--watch", action="store_true", help="show it again every second, until Ctrl-C")
    status.add_argument("--json", action="store_true", help="print JSON; with --watch a line each time")

    replay = _action(actions, "replay", "write a range of time again, without duplicates", replay_range)
    replay.add_argument(
        "--from", dest="start", required=True, metavar="TIME", help="2026-01-31T10:00, in UTC"
    )
    replay.add_argument("--to", dest="end", required=True, metavar="TIME", help="the moment after the range")
    replay.add_argument("--sink", action="append", metavar="NAME", help="only this one; any number of times")

    init = actions.add_parser("init", help="write a commented example")
    init.add_argument("file", nargs="?", default="pipeline.yml", type=Path)
    init.set_defaults(run=write_example)

    jars = actions.add_parser(
        "jars", help="download the jars Spark needs and list them, for spark-submit --jars"
    )
    jars.add_argument("--script", action="store_true", help="the path of the script to give to spark-submit")
    jars.set_defaults(run=lambda arguments: _told(list_jars, arguments))

    demo = actions.add_parser("demo", help="a broker, a day of orders, three tables and a chart: one command")
    demo.add_argument("--orders", type=int, default=20_000, metavar="N", help="how many (default 20000)")
    demo.add_argument("--keep", type=Path, metavar="DIR", help="keep the file, the topic and the tables here")
    demo.set_defaults(run=run_demo)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("file", type=Path, help="the pipeline's YAML file")
    parser.set_defaults(run=lambda arguments: _told(run, arguments))
    return parser


def _told(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run an action; an error of the pipeline becomes one of the command line."""
    from kbroker.exit_codes import CommandFailed
    from kbroker.pipeline.errors import PipelineError

    try:
        return run(arguments)
    except PipelineError as error:
        raise CommandFailed(str(error), error.exit_code) from None


def run_pipeline(arguments: argparse.Namespace) -> int:
    from kbroker.pipeline import commands

    return commands.run(_loaded(arguments.file), once=arguments.once, dry_run=arguments.dry_run)


def check(arguments: argparse.Namespace) -> int:
    from kbroker.pipeline import checks, replay

    pipeline = _loaded(arguments.file)
    for problem in checks.warnings(pipeline):
        _say(f"{arguments.file}:{problem.line}: warning: {problem.message}")
    for sink in pipeline.sinks.values():
        if reason := replay.refusal(pipeline, sink):
            _say(f"{arguments.file}:{sink.line}: note: sink {sink.name!r} cannot be replayed: {reason}")
    _say(f"{arguments.file} is good; its sinks: {', '.join(pipeline.sinks)}")
    return 0


def show_status(arguments: argparse.Namespace) -> int:
    from kbroker.pipeline import kafka_client, status

    pipeline = _loaded(arguments.file)
    with kafka_client.connected(pipeline) as client:
        while True:
            found = status.status(pipeline, client)
            if arguments.json:
                _say(json.dumps(status.plain(found), indent=None if arguments.watch else 2))
            else:
                clear = "\x1b[H\x1b[2J" if arguments.watch and sys.stdout.isatty() else ""
                _say(clear + status.render(found))
            if not arguments.watch:
                return 0
            time.sleep(1)


def replay_range(arguments: argparse.Namespace) -> int:
    from kbroker.pipeline import commands

    return commands.replay_range(_loaded(arguments.file), arguments.start, arguments.end, arguments.sink)


def write_example(arguments: argparse.Namespace) -> int:
    from kbroker.cli.program import program
    from kbroker.exit_codes import CommandFailed
    from kbroker.pipeline.demo import EXAMPLE

    try:
        with arguments.file.open("x") as file:
            file.write(EXAMPLE.read_text())
    except FileExistsError:
        raise CommandFailed(f"{arguments.file} is there already") from None
    _say(f"wrote {arguments.file}. Try it: {program()} pipeline check {arguments.file}")
    return 0


def list_jars(arguments: argparse.Namespace) -> int:
    from kbroker.pipeline import jars

    _say(str(jars.SUBMIT_SCRIPT) if arguments.script else ",".join(map(str, jars.provide())))
    return 0


def run_demo(arguments: argparse.Namespace) -> int:
    from kbroker.pipeline import commands

    return _told(lambda given: commands.run_demo(given.keep, given.orders), arguments)


def _loaded(path: Path) -> Pipeline:
    from kbroker.pipeline import reading

    return reading.load(path)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201
