"""`partition.metadata`: the topic id that a partition's directory belongs to."""

from __future__ import annotations

import base64
import os

from kbroker.storage import names
from kbroker.storage.files import Files

_BEGINNING = b"version: 0\ntopic_id: "
_TOPIC_ID_LENGTH = 22


def encode_topic_id(topic_id: bytes) -> str:
    """As Kafka writes a UUID: base64url without padding."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def write_partition_metadata(files: Files, directory: str, topic_id: bytes) -> str:
    path = os.path.join(directory, names.PARTITION_METADATA)
    files.write_bytes(path, _BEGINNING + encode_topic_id(topic_id).encode(), sync=False)
    return path


def read_partition_metadata(files: Files, directory: str) -> bytes | None:
    """The topic id; None without the file; empty where the file was not yet wholly on disk at a stop.

    Raises ValueError for anything else.
    """
    try:
        data = files.read_bytes(os.path.join(directory, names.PARTITION_METADATA))
    except FileNotFoundError:
        return None
    data = data.rstrip(b"\0")
    if len(data) < len(_BEGINNING) + _TOPIC_ID_LENGTH and _BEGINNING.startswith(data[: len(_BEGINNING)]):
        return b""
    fields = dict(line.split(": ", 1) for line in data.decode("ascii").splitlines() if line)
    if fields.get("version") != "0":
        raise ValueError(f"partition metadata of version {fields.get('version')}")
    topic_id = base64.urlsafe_b64decode(fields["topic_id"] + "==")
    if len(topic_id) != 16:
        raise ValueError(f"a topic id of {len(topic_id)} bytes")
    return topic_id
