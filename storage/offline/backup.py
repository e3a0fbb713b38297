"""Backups: copies of images (`image.py`), made and restored whole or not at all.

    manifest.json   every file with its size and its CRC-32; written last, and only once all is on the disk
    data/           a data directory, of which nobody has started a broker

A restored directory is as one whose broker died at the moment of the image: it counts as not closed, so that
its broker recovers it and raises the leader epochs.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kbroker.storage import names
from kbroker.storage.files import Files
from kbroker.storage.image import FORMAT as IMAGE_FORMAT
from kbroker.storage.image import base_of, remove_image

MANIFEST = "manifest.json"
DATA = "data"
FORMAT = 1
_CHUNK_BYTES = 1 << 20
_INDEXES = (names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX)

Progress = Callable[[int], None]
"""Called with each number of bytes that is done."""


class BackupError(Exception):
    """It cannot be made, or is not whole; the message says why."""


@dataclass(slots=True)
class Manifest:
    time_ms: int
    """The moment that it is of."""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Sizes and CRCs, by path within the data."""

    @property
    def size_bytes(self) -> int:
        return sum(size for size, _ in self.files.values())

    @property
    def partitions(self) -> int:
        return len({os.path.dirname(path) for path in self.files} - {""})


@dataclass(slots=True)
class _Content:
    """What belongs to an image."""

    time_ms: int
    files: dict[str, int]
    """How much of each."""

    @property
    def size_bytes(self) -> int:
        return sum(self.files.values())


def content_of(files: Files, image: str) -> _Content:
    document = _read_json(files, os.path.join(image, names.IMAGE))
    if document.get("format") != IMAGE_FORMAT:
        raise BackupError(f"{image} is an image of another version of kbroker")
    found = _Content(document["time_ms"], {})
    for name, size in files.sizes(image).items():
        if name != names.IMAGE:
            found.files[name] = size
    for directory in files.directories(image):
        end = document["ends"].get(directory)
        sizes = files.sizes(os.path.join(image, directory))
        if end is not None and f"{end[0]:020d}{names.LOG}" not in sizes:
            raise BackupError(f"{directory} is not whole: is the image still there?")
        for name, size in sizes.items():
            taken = size if end is None else _taken(name, size, *end)
            if taken is not None:
                found.files[f"{directory}/{name}"] = taken
    return found


def _taken(name: str, size: int, last_base: int, last_size: int) -> int | None:
    """How much of a file in a log that ended in the segment with `last_base`; None: nothing."""
    base = base_of(name)
    if base is None:
        return size
    if base > last_base or (base == last_base and name.endswith(_INDEXES)):
        return None
    if base == last_base and name.endswith(names.LOG):
        if size < last_size:
            raise BackupError(f"{name} is shorter than it was")
        return last_size
    return size


def make_backup(
    files: Files, image: str, content: _Content, backup: str, progress: Progress = lambda _: None
) -> Manifest:
    """Copy an image into a new directory; nothing of it stays if that fails."""
    if files.exists(backup) and files.names(backup):
        raise BackupError(f"{backup} is not empty{_of_what(files, backup)}")
    files.make_directories(os.path.join(backup, DATA))
    manifest = Manifest(content.time_ms)
    try:
        data = os.path.join(backup, DATA)
        for path, size in sorted(content.files.items()):
            copied, crc = _copy(files, os.path.join(image, path), os.path.join(data, path), size, progress)
            if copied != size:
                raise BackupError(f"{path} is shorter than it was: is the image still there?")
            manifest.files[path] = (size, crc)
        _sync(files, backup)
        document = {
            "format": FORMAT,
            "time_ms": manifest.time_ms,
            "files": {path: list(entry) for path, entry in manifest.files.items()},
        }
        files.replace_bytes(os.path.join(backup, MANIFEST), json.dumps(document).encode())
    except BaseException:
        with contextlib.suppress(OSError):
            remove_image(files, os.path.join(backup, DATA))
        raise
    return manifest


def read_manifest(files: Files, backup: str) -> Manifest:
    path = os.path.join(backup, MANIFEST)
    if not files.exists(path):
        raise BackupError(f"{backup} is no backup that is whole: it has no {MANIFEST}")
    document = _read_json(files, path)
    if document.get("format") != FORMAT:
        raise BackupError(f"{backup} was made by another version of kbroker")
    try:
        manifest = Manifest(
            int(document["time_ms"]),
            {path: (int(size), int(crc)) for path, (size, crc) in document["files"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BackupError(f"{path} is damaged: {error}") from error
    for name in manifest.files:
        if name.count("/") > 1 or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise BackupError(f"{path} is damaged: it names {name!r}")
    return manifest


def check_backup(files: Files, backup: str, manifest: Manifest, progress: Progress = lambda _: None) -> None:
    """Raises BackupError for the first file that is not as it was written."""
    for path, entry in manifest.files.items():
        crc = size = 0
        for chunk in _chunks(files, _in(backup, path), None):
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
            progress(len(chunk))
        _compare(path, entry, (size, crc))


def restore_backup(
    files: Files, backup: str, manifest: Manifest, directory: str, progress: Progress = lambda _: None
) -> None:
    """Make a data directory of a backup. It has its name only when all of it is there and on the disk."""
    directory = os.path.abspath(directory)
    if files.exists(directory) and files.names(directory):
        raise BackupError(f"{directory} is not empty: a backup is restored into a directory of its own")
    unfinished = f"{directory}.restoring-{os.getpid()}"
    files.make_directories(unfinished)
    try:
        for path, entry in manifest.files.items():
            _compare(
                path, entry, _copy(files, _in(backup, path), os.path.join(unfinished, path), None, progress)
            )
        _sync(files, unfinished)
        files.rename(unfinished, directory)
        files.sync_directory(os.path.dirname(directory))
    except BaseException:
        with contextlib.suppress(OSError):
            remove_image(files, unfinished)
        raise


def _in(backup: str, path: str) -> str:
    return os.path.join(backup, DATA, path)


def _compare(path: str, expected: tuple[int, int], found: tuple[int, int]) -> None:
    if found[0] != expected[0]:
        raise BackupError(f"{path} has {found[0]} bytes, not {expected[0]} as when the backup was made")
    if found[1] != expected[1]:
        raise BackupError(f"{path} is damaged: it has another checksum than when the backup was made")


def _copy(files: Files, source: str, target: str, size: int | None, progress: Progress) -> tuple[int, int]:
    """Up to `size` bytes; returns how many there were, and their CRC."""
    if not files.exists(os.path.dirname(target)):
        files.make_directory(os.path.dirname(target))
    crc = position = 0
    file = files.open(target, write=True, create=True)
    try:
        for chunk in _chunks(files, source, size):
            files.write_all(file, chunk, position)
            crc, position = zlib.crc32(chunk, crc), position + len(chunk)
            progress(len(chunk))
    finally:
        file.close()
    return position, crc


def _chunks(files: Files, path: str, size: int | None) -> Iterator[bytes]:
    try:
        file = files.open(path)
    except FileNotFoundError:
        raise BackupError(f"{os.path.basename(path)} is missing: {path}") from None
    try:
        position = 0
        while size is None or position < size:
            most = _CHUNK_BYTES if size is None else min(_CHUNK_BYTES, size - position)
            chunk = files.read_at(file, most, position)
            if not chunk:
                return
            position += len(chunk)
            yield chunk
    finally:
        file.close()


def _sync(files: Files, directory: str) -> None:
    handle = files.open_directory(directory)
    try:
        files.sync_file_system(handle)
    finally:
        handle.close()


def _read_json(files: Files, path: str) -> dict[str, Any]:
    try:
        document = json.loads(files.read_bytes(path))
    except FileNotFoundError:
        raise BackupError(f"{path} is not there") from None
    except ValueError as error:
        raise BackupError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict):
        raise BackupError(f"{path} is damaged")
    return document


def _of_what(files: Files, directory: str) -> str:
    present = files.names(directory)
    if MANIFEST in present:
        return ": there is a backup already"
    return ": there is the beginning of a backup, which can be removed" if present == [DATA] else ""
