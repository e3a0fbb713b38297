"""Putting a data directory that nobody uses in order: what is derived from the logs is made again.

Recovery does the work, as after an unclean stop: everything derived is removed first, so that all of the log
is scanned, and damage is kept apart. What was there once is not cut; what else is cut is kept (set_aside.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from kbroker.storage import names
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files
from kbroker.storage.offline.expectations import Expectations
from kbroker.storage.offline.inspection import Damage, PartitionReport
from kbroker.storage.recovery.damage import Loss
from kbroker.storage.worker import InlineWorker

_DERIVED = (names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX, names.SNAPSHOT)


def repair(
    files: Files, directory: str, reports: Iterable[PartitionReport], now_ms: int
) -> dict[tuple[str, int], list[Loss]]:
    """Afterwards the directory counts as not closed: its broker recovers it and raises the leader epochs.

    Returns what is lost.
    """
    expectations = Expectations(files, directory)
    for report in reports:
        wrong = {each.file for each in report.problems if each.damage is Damage.DERIVED}
        for name in files.sizes(report.directory):
            if name.endswith(_DERIVED) or name in wrong:
                files.unlink_if_exists(os.path.join(report.directory, name))
    for name in expectations.unreadable:
        files.unlink_if_exists(os.path.join(directory, name))
    _forget_clean_stop(files, directory)
    logs = LogDirectory.open(
        directory, worker=InlineWorker(), now_ms=now_ms, files=files, all_written=expectations.clean
    )
    losses = {key: list(found.values()) for key, found in logs.losses.items()}
    logs.close()
    _forget_clean_stop(files, directory)
    return losses


def _forget_clean_stop(files: Files, directory: str) -> None:
    files.unlink_if_exists(os.path.join(directory, names.CLEAN_SHUTDOWN))
    files.sync_directory(directory)
