"""What a crash in the middle of a compaction left in a partition's directory, settled before it is opened.

`.cleaned` files are unfinished and go. Once all files of a segment end in `.swap` it is complete: the swap is
finished, whatever is still there of the segments that it replaces. Segments are swapped in the order of
offsets, so that `.swap` files count only below the first `.cleaned` one.
"""

from __future__ import annotations

import logging
import os

from kbroker.protocol.records import RecordError
from kbroker.storage import names
from kbroker.storage.files import Files
from kbroker.storage.recovery.batch_scan import scan

logger = logging.getLogger("kbroker.storage")

_LOG_SWAP = names.LOG + names.SWAP
_OFFSET_DIGITS = 20


def settle(files: Files, directory: str, present: set[str]) -> None:
    """`present`: the names of the files that are there."""

    def remove(name: str) -> None:
        files.unlink_if_exists(os.path.join(directory, name))

    cleaned = sorted(name for name in present if name.endswith(names.CLEANED))
    swaps = sorted(name for name in present if name.endswith(names.SWAP))
    if cleaned:
        first = cleaned[0][:_OFFSET_DIGITS]
        undone = [name for name in swaps if name[:_OFFSET_DIGITS] >= first]
        for name in undone:  # before the `.cleaned` files that tell that these do not count
            remove(name)
        for name in cleaned:
            remove(name)
        swaps = [name for name in swaps if name not in undone]
    ranges = [
        (offset, _end_offset(files, directory, name, offset))
        for name in swaps
        if (offset := names.offset_of(name, _LOG_SWAP)) is not None
    ]
    for name in sorted(present):
        for suffix in names.SEGMENT_SUFFIXES:
            offset = names.offset_of(name, suffix)
            if offset is not None and any(start <= offset < max(end, start + 1) for start, end in ranges):
                remove(name)
    # The `.log` first: when no `.log.swap` is left, the old files are known to be gone.
    for name in sorted(swaps, key=lambda name: (not name.endswith(_LOG_SWAP), name)):
        path = os.path.join(directory, name)
        logger.info("%s: completing the compaction of %s", os.path.basename(directory), name)
        files.rename(path, path.removesuffix(names.SWAP))


def _end_offset(files: Files, directory: str, name: str, end_offset: int) -> int:
    file = files.open(os.path.join(directory, name))
    try:
        for _, header, _ in scan(files, file, 0, files.size(file)):
            end_offset = header.next_offset
    except RecordError as error:
        logger.error("%s: %s is damaged: %s", os.path.basename(directory), name, error)
    finally:
        file.close()
    return end_offset
