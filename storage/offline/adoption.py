"""Bringing the partition directories of another data directory into this one, for `kbroker import`.

Files are copied beside their place, synced, and then renamed into it: a directory with a partition's name is
always whole. What the other directory's checkpoints say about log start and compaction comes along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from kbroker.storage import names
from kbroker.storage.durability import checkpoints
from kbroker.storage.files import Files
from kbroker.storage.partition_metadata import write_partition_metadata

_CHUNK_BYTES = 4 << 20
_UNFINISHED = ".importing"  # no partition's name, and so left alone by a broker

_TAKEN = (names.LOG, names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX, names.SNAPSHOT)


def copy_partition(
    files: Files, source: str, target: str, topic_id: bytes, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Copy what makes up a partition; the copy belongs to ``topic_id``."""
    unfinished = target + _UNFINISHED
    if files.exists(unfinished):
        files.remove_tree(unfinished)
    files.make_directory(unfinished)
    for name in sorted(files.sizes(source)):
        if name == names.LEADER_EPOCHS or name.endswith(_TAKEN):
            _copy(files, os.path.join(source, name), os.path.join(unfinished, name), progress)
    write_identity(files, unfinished, topic_id)
    files.rename(unfinished, target)
    files.sync_directory(os.path.dirname(target))


def write_identity(files: Files, directory: str, topic_id: bytes) -> None:
    path = write_partition_metadata(files, directory, topic_id)
    file = files.open(path)
    files.sync_all([file], [directory])
    file.close()


def _copy(files: Files, source: str, target: str, progress: Callable[[int], None]) -> None:
    reader = files.open(source)
    writer = files.open(target, write=True, create=True)
    try:
        position = 0
        while part := files.read_at(reader, _CHUNK_BYTES, position):
            files.write_all(writer, part, position)
            position += len(part)
            progress(len(part))
        files.sync(writer)
    finally:
        reader.close()
        writer.close()


def take_offsets(files: Files, source: str, target: str, partitions: Iterable[tuple[str, int]]) -> None:
    """Remember in ``target`` where logs from ``source`` start and how far they are compacted.

    DeleteRecords may have moved the start; below what is compacted, offsets may be missing.
    """
    keys = set(partitions)
    for name in (names.LOG_STARTS, names.CLEANER_OFFSETS):
        found = checkpoints.read(files, source, name)
        known = checkpoints.read(files, target, name)
        wanted = {key: offset for key, offset in known.items() if key not in keys}
        wanted |= {key: found[key] for key in keys if key in found}
        if wanted != known:
            files.replace_bytes(os.path.join(target, name), checkpoints.encode(wanted.items()))


def note_gaps(files: Files, directory: str, gaps: Mapping[tuple[str, int], int]) -> None:
    """Remember up to where offsets were missing when a partition was adopted: compaction did that."""
    name = names.COMPACTED_OFFSETS
    try:
        known = checkpoints.read_checked(files, directory, name)
    except ValueError:
        known = {}
    wanted = {key: offset for key, offset in {**known, **gaps}.items() if offset}
    if wanted != known:
        files.replace_bytes(os.path.join(directory, name), checkpoints.encode_checked(wanted))


def forget_recovery_points(files: Files, directory: str, partitions: Iterable[tuple[str, int]]) -> None:
    """What an earlier partition of the same name left behind says nothing about this one."""
    points = checkpoints.read(files, directory, names.RECOVERY_POINTS)
    kept = {key: offset for key, offset in points.items() if key not in set(partitions)}
    if len(kept) != len(points):
        files.replace_bytes(os.path.join(directory, names.RECOVERY_POINTS), checkpoints.encode(kept.items()))
