"""The end of a segment: the next one must begin there, and the log's end is that of the last one."""

from __future__ import annotations

from kbroker.protocol.records import BatchHeader
from kbroker.storage.partition.log_reader import LogReader
from kbroker.storage.segments.file_segment import FileSegment

_MOST_BATCHES = 20_000  # behind the last index entry: more of them need an index


def end_of(reader: LogReader, segment: FileSegment) -> tuple[int, BatchHeader | None]:
    """The offset that follows a segment, and its last batch; two small reads: the batches behind the last
    index entry are walked over. None: it has no batch.

    Raises RecordError, EOFError or ValueError if its files do not agree.
    """
    entry = segment.index.last(wait=True)
    start = entry[1] if entry is not None else 0
    if entry is not None and start >= segment.size_bytes:
        raise ValueError(f"{segment.index.file.path} points behind the log")
    end_offset = segment.base_offset
    last: BatchHeader | None = None
    batches = reader.headers(segment, start, segment.size_bytes, wait=True)
    for number, (position, header) in enumerate(batches):
        if number == _MOST_BATCHES:
            raise ValueError(f"{segment.index.file.path} lacks entries")
        if entry is not None and position == start and header.base_offset > segment.base_offset + entry[0]:
            raise ValueError(f"{segment.index.file.path} points at another offset")
        if header.base_offset < end_offset:
            raise ValueError(f"offset {header.base_offset} where {end_offset} is due")
        end_offset = header.next_offset
        last = header
        segment.note_timestamp(header)
    return end_offset, last
