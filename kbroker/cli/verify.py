"""`kbroker verify`: is everything in a data directory as it should be? And if not, put it in order."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.cli import offline
from kbroker.cli.output import add_output_options, note, plural, print_json, print_table, say, size_text
from kbroker.exit_codes import FOUND, OK, CommandFailed

if TYPE_CHECKING:
    from kbroker.storage.offline.expectations import Expectations, Expected
    from kbroker.storage.offline.inspection import PartitionReport, Problem

_DESCRIPTION = """\
Check a data directory, or one partition's directory in it, without a broker: the checksum of every batch, the
order of offsets, every index entry, producer snapshots, leader epochs, topic ids, and that nothing is missing
of what the checkpoints and the catalog speak of. Exit code 4: something is wrong. What is normal after a stop
that was not clean, such as a torn end, is a note.

--repair makes indexes and snapshots again and cuts a torn end, as a start after a crash does. Records that
are damaged stay where they are, and only they are lost; what is cut off a log, but for a torn last batch, is
kept beside it in a file that ends in .cut. Exit code 4: something is lost, and it says which offsets.

--rebuild-catalog makes a new catalog.sqlite where it is missing or damaged: the topics of the partitions that
are there, with their ids and records. Configs, committed offsets, groups, transactions, and topics and
partitions that never had a record do not stand in these files, and are lost."""


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
    parser.add_argument(
        "--rebuild-catalog",
        action="store_true",
        help="make a new catalog of the partitions, if it is missing or damaged",
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    directory = os.path.abspath(arguments.directory)
    if not os.path.isdir(directory):
        raise CommandFailed(f"{arguments.directory} is no directory")
    if arguments.rebuild_catalog:
        from kbroker.cli.rebuild_catalog import rebuild_catalog

        rebuild_catalog(directory)
    found = _check(directory, arguments)
    repaired = False
    lost: list[dict[str, Any]] = []
    if arguments.repair and (found.problems or found.notes):
        lost = _repair(found)
        repaired = True
        found = _check(directory, arguments)
    _print(arguments, found, lost, repaired=repaired)
    return FOUND if found.problems or lost else OK


Row = dict[str, str]


class _Findings(NamedTuple):
    root: str
    reports: list[PartitionReport]
    problems: list[Row]
    notes: list[Row]


def _check(directory: str, arguments: argparse.Namespace) -> _Findings:
    from kbroker.storage.files import Files
    from kbroker.storage.offline.expectations import Expectations

    partitions = partition_directories(directory)
    whole = partitions != [directory]
    root = directory if whole else os.path.dirname(directory)
    with offline.locked(root):
        expectations = Expectations(Files(), root)
        reports = _inspect(partitions, expectations, arguments)
        problems = [row for report in reports for row in _rows(report, report.problems)]
        notes = [row for report in reports for row in _rows(report, report.notes)]
        if whole:
            problems += _checkpoint_problems(expectations)
            problems += _catalog_problems(root, reports, expectations)
            problems += _journal_problems(root)
    return _Findings(root, reports, problems, notes)


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


def _inspect(
    partitions: list[str], expectations: Expectations, arguments: argparse.Namespace
) -> list[PartitionReport]:
    from kbroker.storage import names
    from kbroker.storage.files import Files
    from kbroker.storage.offline.inspection import inspect_partition

    def expected(path: str) -> Expected:
        key = names.parse_partition_directory(os.path.basename(path))
        assert key is not None
        return expectations.of(key)

    files = Files()
    with offline.progress("checking", sum(map(offline.log_bytes, partitions))) as progress:
        return [
            inspect_partition(
                files, path, expected=expected(path), records=arguments.records, progress=progress
            )
            for path in partitions
        ]


def _rows(report: PartitionReport, found: list[Problem]) -> list[Row]:
    partition = os.path.basename(report.directory)
    return [_row(partition, each.file, each.damage.value, each.text) for each in found]


def _row(partition: str, file: str, damage: str, problem: str) -> Row:
    return {"partition": partition, "file": file, "damage": damage, "problem": problem}


def _checkpoint_problems(expectations: Expectations) -> list[Row]:
    return [
        _row("-", name, "derived", f"it is unreadable: {error}")
        for name, error in expectations.unreadable.items()
    ]


def _catalog_problems(root: str, reports: list[PartitionReport], expectations: Expectations) -> list[Row]:
    """Where the catalog, the checkpoints and the directories disagree about topics."""
    from kbroker.catalog.sqlite.file_names import CATALOG
    from kbroker.catalog.sqlite.inspection import inspect
    from kbroker.data_directory import catalog_problem
    from kbroker.storage import names

    topics: dict[str, tuple[bytes, int]] = {}
    found: list[Row] = []
    if offline.was_kbrokers(root) and catalog_problem(Path(root)) is not None:
        found.append(_row("-", CATALOG, "catalog", "it is missing or empty: see --rebuild-catalog"))
    elif os.path.exists(os.path.join(root, CATALOG)):
        topics, problem = inspect(Path(root))
        if problem is not None:
            found.append(_row("-", CATALOG, "catalog", problem))
    present = set()
    for report in reports:
        name = os.path.basename(report.directory)
        key = names.parse_partition_directory(name)
        assert key is not None
        present.add(key)
        topic_id, _ = topics.get(key[0], (None, 0))
        if topic_id is not None and report.topic_id and topic_id != report.topic_id:
            text = "it belongs to another topic id than the catalog's topic of this name"
            found.append(_row(name, names.PARTITION_METADATA, "identity", text))
        if topic_id is not None and report.topic_id is None and report.segments and not report.problems:
            text = "it is missing: nothing tells that these are the records of the topic of this name"
            found.append(_row(name, names.PARTITION_METADATA, "identity", text))
    for key in expectations.with_records():
        if key not in present and (not topics or key[1] < topics.get(key[0], (b"", 0))[1]):
            expected = expectations.of(key)
            offsets = f"{expected.start_offset or 0} to {(expected.end_offset or 0) - 1}"
            text = f"offsets {offsets} are lost: its directory is missing"
            found.append(_row(names.partition_directory(*key), "-", "records", text))
    return found


def _journal_problems(root: str) -> list[Row]:
    """Changes that were acknowledged and have got neither into the catalog nor into the journals."""
    from kbroker.catalog.sqlite.inspection import journal_problems

    return [_row("-", name, "journal", text) for name, text in journal_problems(Path(root))]


def _repair(found: _Findings) -> list[dict[str, Any]]:
    """Returns what is lost."""
    from kbroker.storage import names
    from kbroker.storage.errors import StorageError
    from kbroker.storage.files import Files
    from kbroker.storage.offline.repair import repair

    damaged = [report for report in found.reports if report.problems or report.notes]
    try:
        losses = repair(Files(), found.root, damaged, time.time_ns() // 1_000_000)
    except StorageError as error:
        raise CommandFailed(f"{found.root} cannot be repaired: {error}") from error
    return [
        {
            "partition": names.partition_directory(*key),
            "first_offset": loss.first_offset,
            "last_offset": loss.next_offset - 1,
            "reason": loss.reason,
        }
        for key, of_partition in losses.items()
        for loss in of_partition
    ]


def _print(
    arguments: argparse.Namespace, found: _Findings, lost: list[dict[str, Any]], *, repaired: bool
) -> None:
    reports, problems = found.reports, found.problems
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
        print_json(
            {
                "repaired": repaired,
                "partitions": partitions,
                "problems": problems,
                "notes": found.notes,
                "lost": lost,
            }
        )
        return
    if problems:
        columns = ("partition", "file", "damage", "problem")
        print_table([each.upper() for each in columns], [[row[each] for each in columns] for row in problems])
    for row in found.notes:
        note(f"{row['partition']}/{row['file']}: {row['problem']} (normal after a stop that was not clean)")
    for row in lost:
        note(f"{row['partition']}: offsets {row['first_offset']} to {row['last_offset']} are lost")
    checked = f"{plural(len(reports), 'partition')}, {batches:,} batches, {size_text(size)}"
    if lost:
        note(f"{checked}: repaired, but {plural(len(lost), 'range')} of offsets could not be saved")
    elif not problems:
        say(f"{checked}: {'repaired, all is well' if repaired else 'all is well'}")
    elif repaired:
        note(f"{checked}: {plural(len(problems), 'problem')} could not be repaired")
    else:
        note(f"{checked}: {plural(len(problems), 'problem')}; --repair puts in order what can be")
