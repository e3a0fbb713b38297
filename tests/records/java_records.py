"""Kafka's own record code (kafka-clients 3.9.2, the last with the old formats), asked line by line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from compat.harness import jars, java
from kbroker.protocol.records import Record

SOURCE = Path(__file__).with_name("JavaRecords.java")
LIBRARIES = (
    ("lz4-java", "1.10.2"),
    ("snappy-java", "1.1.10.7"),
    ("zstd-jni", "1.5.6-10"),
    ("slf4j-api", "1.7.36"),
)


class JavaRecords:
    def __init__(self) -> None:
        libraries = [str(jars.jar(*library)) for library in LIBRARIES]
        classpath = os.pathsep.join([jars.classpath("kafka-clients-3.9"), *libraries])
        classes = java.compile_sources([SOURCE], "JavaRecords", classpath)
        command = java.command("JavaRecords", classpath=os.pathsep.join([str(classes), classpath]))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        if answer.startswith("error"):
            raise ValueError(answer)
        return answer

    def build(
        self,
        records: Iterable[Record],
        *,
        magic: int = 2,
        codec: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> bytes:
        head = (magic, codec, base_offset, log_append_time_ms)
        producer = (producer_id, producer_epoch, base_sequence, int(transactional))
        return bytes.fromhex(self._ask("build", *head, *producer, *map(_written, records)))

    def read(self, batches: bytes) -> list[Record]:
        """Every record, with offset and no offset delta; what is not valid to Java is a ValueError."""
        return [_read(word) for word in self._ask("read", batches.hex()).split()]

    def down_convert(self, batches: bytes, magic: int, first_offset: int) -> bytes:
        return bytes.fromhex(self._ask("down", magic, first_offset, batches.hex()))

    def marker(
        self,
        kind: str,
        *,
        base_offset: int,
        timestamp: int,
        leader_epoch: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> bytes:
        words = (base_offset, timestamp, leader_epoch, producer_id, producer_epoch, coordinator_epoch)
        return bytes.fromhex(self._ask("marker", kind, *words))

    def retain(self, batches: bytes, offsets: Iterable[int], *, delete_horizon_ms: int) -> bytes:
        """What compaction leaves of batches; the horizon is for those that keep a tombstone."""
        kept = ",".join(map(str, offsets)) or ","
        return bytes.fromhex(self._ask("retain", delete_horizon_ms, 0, kept, batches.hex()))


def _hex(data: bytes | None) -> str:
    return "." if data is None else data.hex()


def _bytes(text: str) -> bytes | None:
    return None if text == "." else bytes.fromhex(text)


def _written(record: Record) -> str:
    headers = "&".join(f"{name.encode().hex()}={_hex(value)}" for name, value in record.headers)
    return f"{record.timestamp},{_hex(record.key)},{_hex(record.value)},{headers}"


def _read(word: str) -> Record:
    offset, timestamp, key, value, headers = word.split(",")
    pairs = [header.split("=") for header in headers.split("&") if header]
    return Record(
        int(timestamp),
        _bytes(key),
        _bytes(value),
        tuple((bytes.fromhex(name).decode(), _bytes(content)) for name, content in pairs),
        int(offset),
    )
