"""The offset checkpoints of a data directory: one offset per partition, in Kafka's text format.

0                         version
2                         number of lines that follow
<topic> <partition> <offset>
…
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable

from kbroker.storage import names
from kbroker.storage.files import Files

Offsets = dict[tuple[str, int], int]


def encode(offsets: Iterable[tuple[tuple[str, int], int]]) -> bytes:
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode(data: bytes) -> Offsets:
    """Raises ValueError if this is not a checkpoint."""
    if not data:
        return {}  # as Kafka leaves one that it never wrote
    lines = data.decode("ascii").splitlines()
    if len(lines) < 2 or lines[0] != "0" or int(lines[1]) != len(lines) - 2:
        raise ValueError("not an offset checkpoint")
    offsets = {}
    for line in lines[2:]:
        topic, partition, offset = line.split(" ")
        offsets[topic, int(partition)] = int(offset)
    return offsets


def encode_checked(offsets: Offsets) -> bytes:
    """For a checkpoint that is ours: behind a line with its CRC-32."""
    content = encode(offsets.items())
    return f"{zlib.crc32(content):08x}\n".encode() + content


def encoded(name: str, offsets: Offsets) -> bytes:
    """The content of the checkpoint of this name."""
    return encode_checked(offsets) if name == names.COMPACTED_OFFSETS else encode(offsets.items())


def read_checked(files: Files, directory: str, name: str) -> Offsets:
    """Empty if there is none; raises ValueError if it is not as it was written."""
    try:
        check, _, content = files.read_bytes(os.path.join(directory, name)).partition(b"\n")
    except FileNotFoundError:
        return {}
    if check != f"{zlib.crc32(content):08x}".encode():
        raise ValueError("it does not have its checksum")
    return decode(content)


def read(files: Files, directory: str, name: str) -> Offsets:
    """Empty if there is no such checkpoint."""
    try:
        return decode(files.read_bytes(os.path.join(directory, name)))
    except FileNotFoundError:
        return {}
