"""A new catalog for a data directory that lost its own: the topics of the partitions that are there.

They are adopted where they are, as `kbroker import` does, damaged or not. What there is of the old catalog is
moved aside, and so are the journals, which belong to it.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.cli import offline
from kbroker.cli.import_data import FoundTopic, OfflineCatalog, adopt, topics_in
from kbroker.cli.output import note, plural
from kbroker.cli.verify import partition_directories
from kbroker.exit_codes import CommandFailed

if TYPE_CHECKING:
    from kbroker.storage.offline.expectations import Expectations

_ASIDE = ".old"
_PRODUCER_ID_BLOCK = 1000  # some were given out that are in no log


def rebuild_catalog(directory: str) -> None:
    from kbroker.catalog.sqlite.file_names import CATALOG
    from kbroker.storage.directory_marks import read_meta_properties
    from kbroker.storage.files import Files
    from kbroker.storage.offline.expectations import Expectations

    with offline.locked(directory, create=True):
        if _is_well(directory):
            raise CommandFailed(f"{os.path.join(directory, CATALOG)} is whole: there is nothing to rebuild")
        topics = list(topics_in(partition_directories(directory)).values())
        expectations = Expectations(Files(), directory)
        for topic in topics:
            _inspect(topic, expectations)
        _move_aside(directory)
        catalog = OfflineCatalog(directory, {})
        try:
            cluster_id = read_meta_properties(Files(), directory).get("cluster.id")
            if cluster_id is not None:
                catalog.set_cluster_id(cluster_id)
            reports = [report for topic in topics for report in topic.reports]
            last = max((report.latest_producer_id for report in reports), default=-1)
            catalog.skip_producer_ids(last + 1 + _PRODUCER_ID_BLOCK)
            adopt(topics, directory, directory, catalog, in_place=True)
        finally:
            catalog.close()
    note(
        f"the catalog has {plural(len(topics), 'topic')} again. Lost are: configs of topics and brokers, "
        "committed offsets, groups, transactions, and topics and partitions that never had a record"
    )


def _is_well(directory: str) -> bool:
    from kbroker.catalog.sqlite.file_names import CATALOG
    from kbroker.catalog.sqlite.inspection import inspect

    path = os.path.join(directory, CATALOG)
    if not os.path.exists(path) or not os.path.getsize(path):
        return False
    topics, problem = inspect(Path(directory))
    return bool(topics) and problem is None


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
    from kbroker.catalog.sqlite.file_names import all_names

    for name in all_names():
        path = os.path.join(directory, name)
        if os.path.exists(path):
            number = next(each for each in count(1) if not os.path.exists(f"{path}{_ASIDE}-{each}"))
            os.rename(path, f"{path}{_ASIDE}-{number}")
