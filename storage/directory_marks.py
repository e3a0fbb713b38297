"""The files that say whose a data directory is and how it was left: meta.properties, .kafka_cleanshutdown."""

from __future__ import annotations

import json
import os
import uuid

from kbroker.storage import names
from kbroker.storage.errors import CorruptDirectory
from kbroker.storage.files import Files
from kbroker.storage.partition_metadata import encode_topic_id


def take_clean_mark(files: Files, directory: str) -> bool:
    """Whether the last user closed the directory; the mark is gone afterwards, also after a power loss."""
    if not files.unlink_if_exists(os.path.join(directory, names.CLEAN_SHUTDOWN)):
        return False
    files.sync_directory(directory)
    return True


def leave_clean_mark(files: Files, directory: str) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": -1}, separators=(",", ":"))
    files.replace_bytes(os.path.join(directory, names.CLEAN_SHUTDOWN), content.encode())


def read_meta_properties(files: Files, directory: str) -> dict[str, str]:
    """Empty if there are none."""
    try:
        text = files.read_bytes(os.path.join(directory, names.META_PROPERTIES)).decode(errors="replace")
    except FileNotFoundError:
        return {}
    lines = (line.strip() for line in text.splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#") and "=" in line)


def check_meta_properties(files: Files, directory: str, cluster_id: str, node_id: int) -> None:
    """Write meta.properties into a new directory; refuse one of another cluster or node."""
    found = read_meta_properties(files, directory)
    if found:
        for key, expected in (("cluster.id", cluster_id), ("node.id", str(node_id))):
            if found.get(key, expected) != expected:
                raise CorruptDirectory(
                    f"{directory} has {key}={found[key]} in {names.META_PROPERTIES}, not {expected}: "
                    "it belongs to another broker, or the file is damaged; without it, it is made again"
                )
        return
    directory_id = encode_topic_id(uuid.uuid4().bytes)
    text = f"#\nversion=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
    files.replace_bytes(os.path.join(directory, names.META_PROPERTIES), text.encode())
