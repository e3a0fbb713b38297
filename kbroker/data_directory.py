"""The data directory of a broker: its logs and its catalog, opened together and held by one process."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from kbroker.catalog.database import CatalogError, Database
from kbroker.storage.config import DirectoryConfig

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.storage.interface import Directory
    from kbroker.storage.worker import Worker

CATALOG = "catalog.sqlite"


class DataDirectoryError(Exception):
    """The directory cannot be used; the message says why."""


def open_data(settings: Settings, worker: Worker, now_ms: int) -> tuple[Directory, Database]:
    """The logs and the catalog, in memory or in the configured directory, which is then locked."""
    config = directory_config(settings)
    if settings["kbroker.in.memory"]:
        from kbroker.storage.memory import MemoryDirectory

        return MemoryDirectory(now_ms=now_ms, settings=config), Database(None)
    from kbroker.storage.directory import LogDirectory
    from kbroker.storage.errors import StorageError

    path = settings.data_directory
    fsync = settings["kbroker.fsync"]
    try:
        logs = LogDirectory.open(str(path), worker=worker, now_ms=now_ms, fsync=fsync, settings=config)
        return logs, Database(path / CATALOG, sync_full=fsync)
    except (OSError, StorageError, CatalogError, sqlite3.Error) as error:
        raise DataDirectoryError(f"cannot use the data directory {path}: {error}") from error


def identify(settings: Settings, cluster_id: str) -> None:
    """Leave Kafka's meta.properties in a new directory; refuse one of another cluster or node."""
    if settings["kbroker.in.memory"]:
        return
    from kbroker.storage.directory_marks import check_meta_properties
    from kbroker.storage.errors import StorageError
    from kbroker.storage.files import Files

    try:
        check_meta_properties(Files(), str(settings.data_directory), cluster_id, settings["node.id"])
    except (OSError, StorageError) as error:
        raise DataDirectoryError(str(error)) from error


def directory_config(settings: Settings) -> DirectoryConfig:
    """What the data directory obeys of the settings in force."""
    return DirectoryConfig(
        retention_initial_delay_ms=settings["log.initial.task.delay.ms"],
        retention_check_interval_ms=settings["log.retention.check.interval.ms"],
        producer_id_expiration_ms=settings["producer.id.expiration.ms"],
        producer_id_expiration_check_interval_ms=settings["producer.id.expiration.check.interval.ms"],
        max_producer_ids=settings["kbroker.max.producer.ids"],
        flush_offset_checkpoint_interval_ms=settings["log.flush.offset.checkpoint.interval.ms"],
        cleaner_enable=settings["log.cleaner.enable"],
        cleaner_backoff_ms=settings["log.cleaner.backoff.ms"],
        cleaner_dedupe_buffer_bytes=settings["log.cleaner.dedupe.buffer.size"],
        cleaner_dedupe_load_factor=settings["log.cleaner.io.buffer.load.factor"],
    )
