"""Putting a data directory that nobody uses in order: what is derived from the logs is made again.

Recovery does the work, as after an unclean stop. Of a partition whose records are whole, everything derived
is removed first and all of it is scanned; of one with damaged records only what is wrong, and its recovery
point stays, so that the damage is kept apart and nothing behind it is cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from kbroker.storage import checkpoints, names
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files
from kbroker.storage.inspection import Damage, PartitionReport
from kbroker.storage.worker import InlineWorker

_DERIVED = (names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX, names.SNAPSHOT)


def repair(files: Files, directory: str, reports: Iterable[PartitionReport], now_ms: int) -> None:
    """Afterwards the directory counts as not closed: its broker recovers it and raises the leader epochs."""
    recovery_points = checkpoints.read(files, directory, names.RECOVERY_POINTS)
    for report in reports:
        kinds = {problem.damage for problem in report.problems}
        if Damage.RECORDS in kinds:
            derived = [each.file for each in report.problems if each.damage is Damage.DERIVED]
        else:
            derived = [name for name in files.sizes(report.directory) if name.endswith(_DERIVED)]
            derived += [each.file for each in report.problems if each.file == names.LEADER_EPOCHS]
            key = names.parse_partition_directory(os.path.basename(report.directory))
            if key is not None:
                recovery_points.pop(key, None)
        for name in derived:
            files.unlink_if_exists(os.path.join(report.directory, name))
    if recovery_points or files.exists(os.path.join(directory, names.RECOVERY_POINTS)):
        files.replace_bytes(
            os.path.join(directory, names.RECOVERY_POINTS), checkpoints.encode(recovery_points.items())
        )
    _forget_clean_stop(files, directory)
    LogDirectory.open(directory, worker=InlineWorker(), now_ms=now_ms, files=files).close()
    _forget_clean_stop(files, directory)


def _forget_clean_stop(files: Files, directory: str) -> None:
    files.unlink_if_exists(os.path.join(directory, names.CLEAN_SHUTDOWN))
    files.sync_directory(directory)
