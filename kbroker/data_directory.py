"""The data directory of a broker: its logs and its catalog, opened together and held by one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.catalog.errors import CatalogDamaged, CatalogError
from kbroker.catalog.rows import CLUSTER_ID
from kbroker.catalog.sqlite.file_names import CATALOG
from kbroker.storage.config import DirectoryConfig

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog
    from kbroker.catalog.sqlite.catalog import SqliteCatalog
    from kbroker.config.settings import Settings
    from kbroker.storage.interface import Directory
    from kbroker.storage.worker import Worker

_ADVICE = (
    "Put it back from a backup; or have a new one made of the partitions that are there, by 'kbroker verify "
    "--rebuild-catalog {path}': topics and their records stay, but configs, committed offsets, groups and "
    "transactions are lost"
)


class DataDirectoryError(Exception):
    """The directory cannot be used; the message says why."""


def open_data(settings: Settings, worker: Worker, now_ms: int) -> tuple[Directory, Catalog]:
    """The logs and the catalog, in memory or in the configured directory, which is then locked."""
    config = directory_config(settings)
    if settings["kbroker.in.memory"]:
        from kbroker.catalog.memory import MemoryCatalog
        from kbroker.storage.memory import MemoryDirectory

        return MemoryDirectory(now_ms=now_ms, settings=config), MemoryCatalog()
    from kbroker.catalog.sqlite.catalog import SqliteCatalog
    from kbroker.storage.directory import LogDirectory
    from kbroker.storage.errors import StorageError

    path = settings.data_directory
    fsync = settings["kbroker.fsync"]
    try:
        problem = catalog_problem(path)
        if problem is not None:
            raise DataDirectoryError(f"cannot use the data directory {path}: {problem}")
        logs = LogDirectory.open(str(path), worker=worker, now_ms=now_ms, fsync=fsync, settings=config)
    except (OSError, StorageError) as error:
        raise DataDirectoryError(f"cannot use the data directory {path}: {error}") from error
    try:
        catalog = SqliteCatalog.open(path, fsync=fsync)
        _check_cluster(path, catalog)
        return logs, catalog
    except (OSError, CatalogError, DataDirectoryError) as error:
        raise refused(settings, logs, error) from error


def catalog_problem(path: Path) -> str | None:
    """Whether a directory that was used has lost its catalog, and what to do about it."""
    from kbroker.storage.directory_marks import read_meta_properties
    from kbroker.storage.files import Files

    catalog = path / CATALOG
    if catalog.exists() and catalog.stat().st_size:
        return None
    cluster_id = read_meta_properties(Files(), str(path)).get("cluster.id")
    if cluster_id is None:
        return None
    return _lost(path, cluster_id, "is empty" if catalog.exists() else "is missing")


def _lost(path: Path, cluster_id: str, what: str) -> str:
    return (
        f"it belongs to the cluster {cluster_id}, but its catalog, {CATALOG}, {what}. "
        f"{_ADVICE.format(path=path)}. ('kbroker import' adopts the data of an Apache Kafka.)"
    )


def _check_cluster(path: Path, catalog: SqliteCatalog) -> None:
    """A catalog that does not know its cluster is new: it lost what was in it, or topics were imported."""
    from kbroker.storage.directory_marks import read_meta_properties
    from kbroker.storage.files import Files

    if catalog.fact(CLUSTER_ID) is not None:
        return
    cluster_id = read_meta_properties(Files(), str(path)).get("cluster.id")
    if cluster_id is None:
        return
    if not catalog.snapshot().topics:
        raise DataDirectoryError(
            f"cannot use the data directory {path}: {_lost(path, cluster_id, 'has nothing in it')}"
        )
    catalog.save_fact(CLUSTER_ID, cluster_id, expected=None).result()


def refused(settings: Settings, logs: Directory, error: Exception) -> DataDirectoryError:
    """Why a broker could not be made of what was opened; a clean directory stays one."""
    if logs.clean_start:
        logs.close()
    if isinstance(error, DataDirectoryError):
        return error
    path = settings.data_directory
    text = str(error)
    if isinstance(error, CatalogDamaged):
        text = f"its catalog, {CATALOG}, is damaged: {error}. {_ADVICE.format(path=path)}"
    return DataDirectoryError(f"cannot use the data directory {path}: {text}")


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
    return settings.typed(DirectoryConfig)
