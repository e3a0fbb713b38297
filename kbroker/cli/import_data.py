"""`kbroker import`: adopt the partitions of a Kafka as topics.

A topic's directories are checked whole, copied, and then its row goes into the catalog: until that last step
a broker leaves the directories alone. The leader epoch goes on above the last one in the log.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kbroker.cli import offline
from kbroker.cli.output import add_output_options, note, plural, print_rows
from kbroker.cli.topic import add_config_option, parse_configs
from kbroker.cli.verify import partition_directories
from kbroker.exit_codes import OK, CommandFailed

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog
    from kbroker.storage.offline.inspection import PartitionReport

_DESCRIPTION = """\
Adopt a Kafka data directory, or one partition's directory, into the data directory of a kbroker that does not
run. The files are copied; SOURCE stays as it is. If SOURCE is the data directory itself, partitions in it
that belong to no topic are adopted where they are.

Topics keep their ids, offsets, timestamps and producers' state. Their configs do not stand in these files:
give those that matter with -c. Committed offsets of groups are not imported."""


@dataclass(slots=True)
class FoundTopic:
    """A topic in the source."""

    name: str
    partitions: dict[int, str] = field(default_factory=dict)
    reports: list[PartitionReport] = field(default_factory=list)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "import",
        help="adopt a Kafka's partitions as topics (offline)",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="a Kafka data directory, or TOPIC-PARTITION in one")
    parser.add_argument(
        "--data", default="./data", metavar="DIR", help="kbroker's data directory (default ./data)"
    )
    parser.add_argument("-t", "--topic", action="append", help="only this topic; any number of times")
    add_config_option(parser)
    parser.add_argument(
        "--allow-missing", action="store_true", help="partitions that are not in SOURCE shall be empty"
    )
    parser.add_argument("--dry-run", action="store_true", help="check, and show what would be imported")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    source = os.path.abspath(arguments.source)
    target = os.path.abspath(arguments.data)
    if not os.path.isdir(source):
        raise CommandFailed(f"{arguments.source} is no directory")
    partitions = partition_directories(source)
    root = os.path.dirname(source) if partitions == [source] else source
    if not arguments.dry_run:
        os.makedirs(target, exist_ok=True)
    in_place = os.path.realpath(root) == os.path.realpath(target)
    with offline.locked(target, create=not arguments.dry_run):
        if in_place:
            return _import(arguments, partitions, root, target, in_place=True)
        with offline.locked(root):
            return _import(arguments, partitions, root, target, in_place=False)


def _import(
    arguments: argparse.Namespace, partitions: list[str], root: str, target: str, *, in_place: bool
) -> int:
    catalog = OfflineCatalog(target, parse_configs(arguments.config))
    try:
        topics = _choose(arguments, partitions, catalog, in_place=in_place)
        for topic in topics:
            _check(topic, arguments, root, target, catalog, in_place=in_place)
        rows = [_row(topic, catalog) for topic in topics]
        if not arguments.dry_run:
            adopt(topics, root, target, catalog, in_place=in_place)
    finally:
        catalog.close()
    if not rows:
        note(f"{arguments.source} holds no topic that could be imported")
        return OK
    columns = {"topic": "TOPIC", "partitions": "PARTITIONS", "offsets": "OFFSETS", "bytes": "BYTES"}
    print_rows(arguments, rows, {**columns, "leader_epoch": "EPOCH"})
    if arguments.dry_run:
        note("nothing was changed: this was a dry run")
    return OK


def topics_in(partitions: list[str]) -> dict[str, FoundTopic]:
    """By name, the topics that these directories belong to."""
    from kbroker.storage import names

    found: dict[str, FoundTopic] = {}
    for path in partitions:
        key = names.parse_partition_directory(os.path.basename(path))
        assert key is not None
        found.setdefault(key[0], FoundTopic(key[0])).partitions[key[1]] = path
    return found


def _choose(
    arguments: argparse.Namespace, partitions: list[str], catalog: OfflineCatalog, *, in_place: bool
) -> list[FoundTopic]:
    from kbroker.topics.names import INTERNAL_TOPICS

    wanted = set(arguments.topic or ())
    found = topics_in(partitions)
    if missing := wanted - found.keys():
        raise CommandFailed(f"{arguments.source} has no partition of topic {min(missing)}")
    chosen = []
    for name, topic in sorted(found.items()):
        internal = name in INTERNAL_TOPICS or name.startswith("__cluster_metadata")
        if internal and (name in wanted or len(found) == 1):
            raise CommandFailed(f"{name} is internal to Kafka: kbroker keeps that state in its catalog")
        if internal or (wanted and name not in wanted) or (in_place and catalog.has(name)):
            continue
        chosen.append(topic)
    return chosen


def _check(
    topic: FoundTopic,
    arguments: argparse.Namespace,
    root: str,
    target: str,
    catalog: OfflineCatalog,
    *,
    in_place: bool,
) -> None:
    """Refuse what would not be whole afterwards."""
    from kbroker.storage import names
    from kbroker.storage.files import Files
    from kbroker.storage.offline.inspection import Damage, inspect_partition

    catalog.check_new(topic.name)
    gaps = set(range(max(topic.partitions))) - topic.partitions.keys()
    if gaps and not arguments.allow_missing:
        raise CommandFailed(
            f"topic {topic.name} lacks partition {min(gaps)} in {root}: with --allow-missing it will be empty"
        )
    clean = os.path.exists(os.path.join(root, names.CLEAN_SHUTDOWN))
    files = Files()
    with offline.progress(topic.name, sum(map(offline.log_bytes, topic.partitions.values()))) as progress:
        for number, path in sorted(topic.partitions.items()):
            if not in_place and os.path.exists(
                os.path.join(target, names.partition_directory(topic.name, number))
            ):
                raise CommandFailed(
                    f"{target} has a directory {topic.name}-{number} already, of no topic: adopt it with "
                    f"'kbroker import {target} --data {target}', or move it away"
                )
            if any(name.endswith(names.SWAP) for name in files.sizes(path)):
                raise CommandFailed(
                    f"{path} was left in the middle of a compaction: start and stop its broker, then import"
                )
            report = inspect_partition(files, path, progress=progress)
            for problem in report.problems:
                if problem.damage in (Damage.RECORDS, Damage.IDENTITY) or (
                    clean and problem.damage is Damage.TAIL
                ):
                    raise CommandFailed(
                        f"{path}/{problem.file} is damaged {problem.text}: "
                        "'kbroker verify' tells more, and --repair mends what can be"
                    )
            topic.reports.append(report)
    if len({report.topic_id for report in topic.reports if report.topic_id}) > 1:
        raise CommandFailed(
            f"the partitions of {topic.name} have different topic ids: they are not one topic"
        )


def _row(topic: FoundTopic, catalog: OfflineCatalog) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "partitions": max(topic.partitions) + 1,
        "offsets": sum(report.end_offset - report.start_offset for report in topic.reports),
        "bytes": sum(report.size_bytes for report in topic.reports),
        "leader_epoch": catalog.leader_epoch(topic),
    }


def adopt(
    topics: list[FoundTopic], root: str, target: str, catalog: OfflineCatalog, *, in_place: bool
) -> None:
    from kbroker.storage import names
    from kbroker.storage.files import Files
    from kbroker.storage.offline import adoption

    files = Files()
    for topic in topics:
        topic_id = catalog.topic_id(topic)
        with offline.progress(topic.name, sum(report.size_bytes for report in topic.reports)) as progress:
            for number, path in sorted(topic.partitions.items()):
                if in_place:
                    adoption.write_identity(files, path, topic_id)
                else:
                    copy = os.path.join(target, names.partition_directory(topic.name, number))
                    adoption.copy_partition(files, path, copy, topic_id, progress)
        keys = [(topic.name, number) for number in topic.partitions]
        if not in_place:
            adoption.forget_recovery_points(files, target, keys)
            adoption.take_offsets(files, root, target, keys)
            if not os.path.exists(os.path.join(root, names.CLEAN_SHUTDOWN)):
                # Its last batches may be torn: the next start must look.
                files.unlink_if_exists(os.path.join(target, names.CLEAN_SHUTDOWN))
        gaps = zip(sorted(topic.partitions), topic.reports, strict=True)
        adoption.note_gaps(files, target, {(topic.name, number): report.last_gap for number, report in gaps})
        catalog.insert(topic, topic_id)
        note(f"{topic.name}: {plural(len(topic.partitions), 'partition')} imported")


class OfflineCatalog:
    """The topics of a data directory that nobody serves."""

    def __init__(self, directory: str, configs: dict[str, str]) -> None:
        from pathlib import Path

        from kbroker.catalog.memory import MemoryCatalog
        from kbroker.catalog.rows import UNCLEAN_STARTS
        from kbroker.catalog.sqlite.catalog import SqliteCatalog
        from kbroker.config.definition import InvalidConfig
        from kbroker.config.settings import Settings
        from kbroker.topics.registry import Topics

        try:
            Settings().check_topic_configs(configs)
        except InvalidConfig as error:
            raise CommandFailed(
                f"{error}; 'kbroker docs configuration' lists the configs of topics"
            ) from error
        path = Path(directory)
        self._configs = configs
        # A dry run into a new directory leaves none behind.
        self._catalog: Catalog = SqliteCatalog.open(path) if path.is_dir() else MemoryCatalog()
        stored = self._catalog.snapshot()
        self._unclean_starts = int(stored.facts.get(UNCLEAN_STARTS, "0"))
        self._topics = Topics(self._catalog, stored.topics, {})

    def close(self) -> None:
        self._catalog.close()

    def set_cluster_id(self, cluster_id: str) -> None:
        from kbroker.catalog.rows import CLUSTER_ID

        self._catalog.save_fact(CLUSTER_ID, cluster_id, expected=None).result()

    def skip_producer_ids(self, count: int) -> None:
        """The first ones have been given out."""
        self._catalog.reserve_producer_ids(count).result()

    def has(self, name: str) -> bool:
        return self._topics.get(name) is not None

    def check_new(self, name: str) -> None:
        from kbroker.protocol.errors import ApiError

        try:
            self._topics.check_new(name)
        except ApiError as error:
            raise CommandFailed(f"{str(error).rstrip('.')}: import other topics with -t") from error

    def topic_id(self, topic: FoundTopic) -> bytes:
        """The one it has; a new one for logs of a Kafka that knew no topic ids."""
        from kbroker.topics.registry import new_topic_id

        ids = [report.topic_id for report in topic.reports if report.topic_id]
        known = max(ids, key=ids.count, default=None)
        other = self._topics.get_by_id(known) if known is not None else None
        if other is not None:
            raise CommandFailed(f"{topic.name} has the topic id of {other.name}: it was imported before")
        return known or new_topic_id()

    def leader_epoch(self, topic: FoundTopic) -> int:
        return 1 + max((report.latest_epoch for report in topic.reports), default=-1)

    def insert(self, topic: FoundTopic, topic_id: bytes) -> None:
        from kbroker.topics.registry import Topic

        base = self.leader_epoch(topic) - self._unclean_starts
        partitions = max(topic.partitions) + 1
        self._topics.adopt(Topic(topic.name, topic_id, partitions, base, dict(self._configs))).result()
