"""A new catalog for a data directory that lost its own: the topics of the partitions that are there.

They are adopted where they are, as `kbroker import` does, damaged or not. What there is of the old catalog is
moved aside, and so are the journals, which belong to it.
"""

from __future__ import annotations

import os
import sqlite3
from itertools import count
from typing import TYPE_CHECKING

from kbroker.cli import offline
from kbroker.cli.import_data import FoundTopic, OfflineCatalog, adopt, topics_in
from kbroker.cli.output import note, plural
from kbroker.cli.verify import partition_directories, read_catalog
from kbroker.exit_codes import CommandFailed

if TYPE_CHECKING:
    from kbroker.storage.offline.expectations import Expectations

_ASIDE = ".old"
_PRODUCER_ID_BLOCK = 1000  # some were given out that are in no log


def rebuild_catalog(directory: str) -> None:
    from kbroker.data_directory import CATALOG
    from kbroker.storage.directory_marks import read_meta_properties
    from kbroker.storage.files import Files
    from kbroker.storage.offline.expectations import Expectations

    with offline.locked(directory, create=True):
        path = os.path.join(directory, CATALOG)
        if _is_well(path):
            raise CommandFailed(f"{path} is whole: there is nothing to rebuild")
        topics = list(topics_in(partition_directories(directory)).values())
        expectations = Expectations(Files(), directory)
        for topic in topics:
            _inspect(topic, expectations)
        _move_aside(directory)
        catalog = OfflineCatalog(directory, {})
        try:
            cluster_id = read_meta_properties(Files(), directory).get("cluster.id")
            if cluster_id is not None:
                catalog.save_fact("cluster.id", cluster_id)
            reports = [report for topic in topics for report in topic.reports]
            last = max((report.latest_producer_id for report in reports), default=-1)
            catalog.save_fact("producer.id.next", str(last + 1 + _PRODUCER_ID_BLOCK))
            adopt(topics, directory, directory, catalog, in_place=True)
        finally:
            catalog.close()
    note(
        f"the catalog has {plural(len(topics), 'topic')} again. Lost are: configs of topics and brokers, "
        "committed offsets, groups, transactions, and topics and partitions that never had a record"
    )


def _is_well(path: str) -> bool:
    if not os.path.exists(path) or not os.path.getsize(path):
        return False
    try:
        topics, answer = read_catalog(path)
        return bool(topics) and answer == "ok"
    except sqlite3.Error:
        return False


def _inspect(topic: FoundTopic, expectations: Expectations) -> None:
    from kbroker.storage.files import Files
    from kbroker.storage.offline.inspection import inspect_partition

    with offline.progress(topic.name, sum(map(offline.log_bytes, topic.partitions.values()))) as progress:
        topic.reports = [
            inspect_partition(
                Files(), path, expected=expectations.of((topic.name, number)), progress=progress
            )
            for number, path in sorted(topic.partitions.items())
        ]


def _move_aside(directory: str) -> None:
    from kbroker.catalog.stored import OFFSET_JOURNALS, TRANSACTION_JOURNALS, last_name
    from kbroker.data_directory import CATALOG

    belongings = [CATALOG, f"{CATALOG}-wal", f"{CATALOG}-shm"]
    for names in (OFFSET_JOURNALS, TRANSACTION_JOURNALS):
        belongings += [*names, last_name(names)]
    for name in belongings:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            number = next(each for each in count(1) if not os.path.exists(f"{path}{_ASIDE}-{each}"))
            os.rename(path, f"{path}{_ASIDE}-{number}")
