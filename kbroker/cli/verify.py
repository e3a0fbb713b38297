"""`kbroker verify`: is everything in a data directory as it should be? And if not, put it in order."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

from kbroker.cli import FOUND, OK, offline
from kbroker.cli.errors import CommandFailed
from kbroker.cli.output import add_output_options, note, plural, print_json, print_table, say, size_text

if TYPE_CHECKING:
    from kbroker.storage.inspection import PartitionReport

_DESCRIPTION = """\
Check a data directory, or one partition's directory in it, without a broker: the checksum of every batch, the
order of offsets, every index entry, producer snapshots, leader epochs, topic ids. Exit code 4: something is
wrong. --repair makes indexes and snapshots again and cuts a torn end, as a start after a crash does; records
that are damaged in the middle of a log stay where they are, and only they are lost."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "verify",
        help="check a data directory, repair it on request (offline)",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", nargs="?", default="./data", metavar="DIR", help="default ./data")
    parser.add_argument("--records", action="store_true", help="also decompress and read every record")
    parser.add_argument("--repair", action="store_true", help="put in order what can be")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    directory = os.path.abspath(arguments.directory)
    if not os.path.isdir(directory):
        raise CommandFailed(f"{arguments.directory} is no directory")
    partitions = partition_directories(directory)
    root = os.path.dirname(directory) if partitions == [directory] else directory
    with offline.locked(root):
        reports = _inspect(partitions, arguments)
        problems = _problems(root, reports, whole=partitions != [directory])
    repaired = False
    if arguments.repair and problems:
        _repair(root, reports)
        repaired = True
        with offline.locked(root):
            reports = _inspect(partition_directories(directory), arguments)
            problems = _problems(root, reports, whole=partitions != [directory])
    _print(arguments, reports, problems, repaired=repaired)
    return FOUND if problems else OK


def partition_directories(directory: str) -> list[str]:
    """Those in a data directory; or the directory itself if it is one."""
    from kbroker.storage import names

    if names.parse_partition_directory(os.path.basename(directory)) and _has_segments(directory):
        return [directory]
    with os.scandir(directory) as entries:
        found = [
            entry.path
            for entry in entries
            if entry.is_dir() and names.parse_partition_directory(entry.name) is not None
        ]
    return sorted(found)


def _has_segments(directory: str) -> bool:
    from kbroker.storage import names

    return any(names.offset_of(name, names.LOG) is not None for name in os.listdir(directory))


def _inspect(partitions: list[str], arguments: argparse.Namespace) -> list[PartitionReport]:
    from kbroker.storage.files import Files
    from kbroker.storage.inspection import inspect_partition

    files = Files()
    with offline.progress("checking", sum(map(offline.log_bytes, partitions))) as progress:
        return [
            inspect_partition(files, path, records=arguments.records, progress=progress)
            for path in partitions
        ]


def _problems(root: str, reports: list[PartitionReport], *, whole: bool) -> list[dict[str, str]]:
    found = [
        {
            "partition": os.path.basename(report.directory),
            "file": problem.file,
            "damage": problem.damage.value,
            "problem": problem.text,
        }
        for report in reports
        for problem in report.problems
    ]
    if whole:
        found += _catalog_problems(root, reports)
    return found


def _catalog_problems(root: str, reports: list[PartitionReport]) -> list[dict[str, str]]:
    """Where the catalog and the directories disagree about topics."""
    import sqlite3

    from kbroker.data_directory import CATALOG
    from kbroker.storage import names

    path = os.path.join(root, CATALOG)
    if not os.path.exists(path):
        return []
    found = []
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            ids = dict(connection.execute("SELECT name, topic_id FROM topics"))
            (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        return [{"partition": "-", "file": CATALOG, "damage": "catalog", "problem": str(error)}]
    if answer != "ok":
        found.append({"partition": "-", "file": CATALOG, "damage": "catalog", "problem": str(answer)})
    for report in reports:
        name = os.path.basename(report.directory)
        key = names.parse_partition_directory(name)
        if key is not None and report.topic_id and key[0] in ids and ids[key[0]] != report.topic_id:
            text = "it belongs to another topic id than the catalog's topic of this name"
            found.append(
                {"partition": name, "file": names.PARTITION_METADATA, "damage": "identity", "problem": text}
            )
    return found


def _repair(root: str, reports: list[PartitionReport]) -> None:
    from kbroker.storage.errors import StorageError
    from kbroker.storage.files import Files
    from kbroker.storage.repair import repair

    damaged = [report for report in reports if report.problems]
    try:
        repair(Files(), root, damaged, time.time_ns() // 1_000_000)
    except StorageError as error:
        raise CommandFailed(f"{root} cannot be repaired: {error}") from error


def _print(
    arguments: argparse.Namespace,
    reports: list[PartitionReport],
    problems: list[dict[str, str]],
    *,
    repaired: bool,
) -> None:
    batches = sum(report.batches for report in reports)
    size = sum(report.size_bytes for report in reports)
    if arguments.json:
        partitions: list[dict[str, Any]] = [
            {
                "partition": os.path.basename(report.directory),
                "segments": report.segments,
                "batches": report.batches,
                "bytes": report.size_bytes,
                "start_offset": report.start_offset,
                "end_offset": report.end_offset,
                "leader_epoch": report.latest_epoch,
            }
            for report in reports
        ]
        print_json({"repaired": repaired, "partitions": partitions, "problems": problems})
        return
    if problems:
        columns = ("partition", "file", "damage", "problem")
        print_table([each.upper() for each in columns], [[row[each] for each in columns] for row in problems])
    checked = f"{plural(len(reports), 'partition')}, {batches:,} batches, {size_text(size)}"
    if not problems:
        say(f"{checked}: {'repaired, all is well' if repaired else 'all is well'}")
    elif repaired:
        note(f"{checked}: {plural(len(problems), 'problem')} could not be repaired")
    else:
        note(f"{checked}: {plural(len(problems), 'problem')}; --repair puts in order what can be")
