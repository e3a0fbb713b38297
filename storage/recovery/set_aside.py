"""What is cut off a log and may be wanted is kept beside it: `<base offset>-<position>.cut`.

Neither Kafka nor kbroker takes such a file for a segment; it goes with its partition.
"""

from __future__ import annotations

import os

from kbroker.storage import names
from kbroker.storage.files import Files
from kbroker.storage.segments.file_segment import FileSegment

_CHUNK_BYTES = 1 << 20


def set_aside(files: Files, segment: FileSegment, position: int) -> str:
    """Cut the `.log` of a segment at `position`; returns the path of the file that has what was behind it."""
    path = _free_name(files, segment, position)
    source = segment.handle
    target = files.open(path, write=True, create=True)
    try:
        done = 0
        while part := files.read_at(source, _CHUNK_BYTES, position + done):
            files.write_all(target, part, done)
            done += len(part)
        files.sync(target)
    finally:
        target.close()
    files.sync_directory(segment.directory)
    files.truncate(segment.handle, position)
    segment.size_bytes = position
    return path


def _free_name(files: Files, segment: FileSegment, position: int) -> str:
    stem = os.path.join(segment.directory, f"{segment.base_offset:020d}-{position}")
    for number in range(1, 1000):
        path = stem + ("" if number == 1 else f"-{number}") + names.CUT
        if not files.exists(path):
            return path
    return stem + names.CUT
