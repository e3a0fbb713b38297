"""The names of files and directories in a data directory: Kafka's."""

from __future__ import annotations

import os
import re
import uuid

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
CUT = ".cut"  # ours: see set_aside.py
DELETE_DIRECTORY = "-delete"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
IMAGES = ".images"  # ours: see image.py
IMAGE = "image.json"
PROBE = ".probe"  # ours: written and removed to see whether the volume takes files
META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
COMPACTED_OFFSETS = "compacted-offset-checkpoint"  # ours: below these offsets some may be missing

MAX_NAME_LENGTH = 255
_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_DELETED_DIRECTORY = re.compile(_PARTITION_DIRECTORY.pattern + r"\.[0-9a-f]{32}-delete")
_OFFSET = re.compile(r"[0-9]{20}")


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    return os.path.join(directory, f"{base_offset:020d}{suffix}")


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in a file name that ends with `suffix`."""
    stem = name.removesuffix(suffix)
    return int(stem) if stem != name and _OFFSET.fullmatch(stem) else None


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    match = _PARTITION_DIRECTORY.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def parse_deleted_directory(name: str) -> tuple[str, int] | None:
    """The partition whose directory this was, if the name had room to tell."""
    match = _DELETED_DIRECTORY.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def given_up_images() -> str:
    """A new name for the directory of images that nobody knows any more."""
    return f"{IMAGES}.{uuid.uuid4().hex}{DELETE_DIRECTORY}"


def deleted_directory(topic: str, partition: int) -> str:
    """A new name for the directory of a deleted partition, no longer than a file system takes."""
    suffix = f"-{partition}.{uuid.uuid4().hex}{DELETE_DIRECTORY}"
    return topic[: MAX_NAME_LENGTH - len(suffix)] + suffix
